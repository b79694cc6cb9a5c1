from dataclasses import replace
from typing import Any

import pytest

from oprag.compare.data.data_set import DataSet, Evidence, Question
from oprag.compare.db.records import key_of, prompt_key
from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.run import run
from oprag.methods.prompts import Message, Prompt
from tests.compare.helpers import Words, experiment, keepers, reply_to, rows
from tests.helpers import run_python


def prompt(*messages, step="answer"):
    return Prompt(tuple(Message(role, content) for role, content in messages), step)


@pytest.mark.process
def test_keys_are_the_same_in_every_process():
    code = """
from tests.compare.helpers import *
from tests.compare.db.test_keys import opened, prompt
from oprag.compare.db.records import *
found = opened(stores={"mine": reply_to}, grid={"k": [3, 4], "store": ["index", "mine"], "chunk_size": 32})
print([row.key for row in found.cell_records], [row.key for row in found.question_records])
print(prompt_key("m", prompt(("user", "Hällo \\ud800")), 1), key_of("a", {"b": 1}))
"""
    assert run_python(code, PYTHONHASHSEED="1") == run_python(code, PYTHONHASHSEED="2")


def test_borders_cannot_be_moved():
    assert key_of("a", "b", "c") != key_of("a", "bc", "")
    assert key_of("a", ["b", "c"]) != key_of("a", "b", "c")
    assert key_of("a", 1) != key_of("a", "1") != key_of("a", True)
    assert key_of("a", None) != key_of("a", "null")
    one = prompt(("system", "a"), ("user", "b"))
    for other in [
        prompt(("system", "ab"), ("user", "")),
        prompt(("user", "a"), ("user", "b")),
        prompt(("user", "b"), ("system", "a")),
        prompt(("system", "a\0user\x001\0b")),
    ]:
        assert prompt_key("m", one, 1) != prompt_key("m", other, 1)
    assert prompt_key("m", one, 1) != prompt_key("n", one, 1)
    assert prompt_key("m", one, 1) != prompt_key("m", one, 2)
    assert prompt_key("m1", one, 1) != prompt_key("m", one, 11)


def test_what_does_not_matter_is_not_part_of_a_key():
    assert prompt_key("m", prompt(("user", "a")), 1) == prompt_key("m", prompt(("user", "a"), step="map"), 1)
    assert key_of("a", {"b": 1, "c": 2}) == key_of("a", {"c": 2, "b": 1})
    assert key_of("a", ["a", "b"]) == key_of("a", ("a", "b"))


def test_surrogates_are_told_apart_and_what_has_no_key_is_refused():
    assert key_of("a", "\ud83d") != key_of("a", "�")
    assert key_of("a", "\ud83d\ude00") != key_of("a", "😀")
    with pytest.raises(TypeError, match="not iterable"):
        key_of("a", object())


def model(text):
    return reply_to(text)


def opened(**changes):
    given = {"models": {"m": ModelSpec(model, "model")}, "grid": {"k": 4, "chunk_size": 32}, **changes}
    return PreparedExperiment(experiment(**given))


def other_store(embeddings):
    raise NotImplementedError


GRID = {"k": 4, "chunk_size": 32}
# What an answer in a cell depends on, one after the other.
CHANGES: dict[str, dict[str, Any]] = {
    "model": {"models": {"m": ModelSpec(model, "another")}},
    "embedder": {"embedders": {"words": EmbedderSpec(Words("others"), "others")}},
    "prefix": {"embedders": {"words": EmbedderSpec(Words(), "words", question_prefix="Q: ")}},
    "prompt": {"prompts": {"answer": "Text: {context}\nQuestion: {question}"}},
    "prompt of another step": {"prompts": {"map": "Part: {context}\nQuestion: {question}"}},
    "counter": {"count_tokens": "words"},
    "metrics": {"metrics": ["token_f1"]},
    "score embedder": {"score_embedder": EmbedderSpec(Words("others"), "others")},
    **{
        name: {"grid": {**GRID, name: value}}
        for name, value in [
            *[("k", 5), ("chunk_size", 33), ("chunk_overlap", 1), ("splitter", "words"), ("search", "bm25")],
            *[("repeat", 2), ("order", "rank"), ("token_budget", 500), ("similarity_threshold", 0.1), ("neighbors", 1)],
            *[("redundancy_threshold", 0.9), ("stitch", False), ("separator", "--"), ("gap", "..."), ("cite", True)],
            *[("header", "{source}"), ("method", "refine"), ("empty_answer", "None."), ("store", "in_memory")],
            ("max_candidates", 9),
        ]
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_ingredient_is_another_cell(name):
    (before,) = opened().cell_records
    (after,) = opened(**CHANGES[name]).cell_records
    assert before.key != after.key


def test_another_function_behind_the_name_of_a_store_is_another_cell():
    grid = {**GRID, "store": "mine"}
    one, other, same = (
        opened(grid=grid, stores={"mine": store}).cell_records[0].key for store in (model, other_store, model)
    )
    assert one == same != other


def test_other_cells_names_limits_and_prices_do_not_matter():
    (alone,) = opened().cell_records
    among = opened(grid={"k": [3, 4], "chunk_size": [32, 64], "method": ["refine", "stuff"]}).cell_records
    assert alone.key in {row.key for row in among}
    assert len({row.key for row in among}) == 8
    others = {"limits": {"calls": 5}, "prices": {"m": {"input": 1, "output": 1}}, "max_concurrency": 3}
    assert opened(name="another", **others).cell_records == [alone]


DATA = DataSet(
    name="set",
    documents={"a": "The text of a.", "b": "The text of b."},
    questions=[
        Question(
            id="1",
            text="What?",
            documents=("a",),
            answers=("text",),
            choices=("text", "none"),
            right_choice=0,
            evidence=(Evidence("a", 4, 8),),
            about={"kind": "easy"},
        )
    ],
)


def changed(**changes):
    return replace(DATA, questions=[replace(DATA.questions[0], **changes)])


@pytest.mark.parametrize(
    ("data", "same"),
    [
        (changed(text="Why?"), False),
        (changed(answers=("text", "a text")), False),
        (changed(choices=("text", "nothing")), False),
        (changed(right_choice=1), False),
        (changed(evidence=(Evidence("a", 4, 9),)), False),
        (changed(documents=("b",), evidence=(Evidence("b", 4, 8),)), False),
        (changed(documents=("a", "b")), False),
        (changed(id="2"), False),
        (changed(about={"kind": "hard"}), True),
        (DataSet(name="set", documents={**DATA.documents, "a": "Another text."}, questions=DATA.questions), False),
        (DataSet(name="set", documents={**DATA.documents, "b": "Another text."}, questions=DATA.questions), True),
        (DataSet(name="set", documents={**DATA.documents, "a": ["The text of a."]}, questions=DATA.questions), False),
        (DataSet(name="other", documents=DATA.documents, questions=DATA.questions), True),
    ],
)
def test_another_ingredient_is_another_question(data, same):
    (before,) = opened(data=DATA).question_records
    (after,) = opened(data=data).question_records
    assert (before.key == after.key) == same


def test_what_is_said_about_a_question_is_brought_up_to_date(tmp_path):
    for kind in ("easy", "hard"):
        run(experiment(model, data=changed(about={"kind": kind}), grid={"k": 1, "chunk_size": 32}), tmp_path / "r.db")
    assert rows(tmp_path / "r.db", "SELECT about FROM questions") == [('{"kind":"hard"}',)]


def test_keys_of_earlier_versions_hold(tmp_path):
    """The same work must keep its key, or every stored reply would be paid for again."""
    path = tmp_path / "results.db"
    grid = [
        {"k": 2, "chunk_size": 16, "search": "bm25", "method": ["stuff", "closed_book"]},
        {"k": 2, "chunk_size": 16, "store": "in_memory"},
    ]
    run(experiment(reply_to, grid=grid, data=keepers(1, 1, 60), metrics=["token_f1"]), path)

    assert rows(path, "SELECT key FROM cells ORDER BY rowid") == [
        ("f13f9a563b7b466e7320672206f8b81f",),
        ("b5f4530dc0820d0593484135066eeca4",),
        ("f0c6573cbf39da0247f4dc239831b287",),
    ]
    assert rows(path, "SELECT key FROM questions") == [("bd87ff5624a493db279c430c28ad5b59",)]
    assert rows(path, "SELECT step, key FROM replies ORDER BY key") == [
        ("answer", "dbfee4448d4c50a64230769c392a3899"),
        ("closed_book", "ee10494ae2ca8b50cde99d26747449bb"),
    ]
    assert prompt_key("m", prompt(("system", "a"), ("user", "Hällo \ud800")), 2) == "46937ef2e25d7c53ed7837e0d8e0c62d"
    assert key_of("document", "\ud83d") == "4a893427258d4055eb28c10ddd5e351b"
    assert key_of("document", ("a", "b")) == "1686b4b00b7b63797e4c7d0eac287b6c"
    assert key_of("a", {"b": 1, "a": None}) == "627de9e52bb62a0a9f7d8b11e47bb3a8"
