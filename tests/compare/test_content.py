from typing import Any

import pytest

from oprag.compare.content import address, digest, document_address, prompt_address
from oprag.compare.data.data_set import DataSet, Evidence, Question
from oprag.compare.opened import Opened
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.methods.model_calls import Message, Prompt
from tests.compare.helpers import Words, experiment, reply_to
from tests.helpers import run_python


def prompt(*messages, step="answer"):
    return Prompt(tuple(Message(role, content) for role, content in messages), step)


@pytest.mark.process
def test_addresses_are_the_same_in_every_process():
    code = """
from tests.compare.helpers import *
from tests.compare.test_content import opened, prompt
from oprag.compare.content import *
found = opened(stores={"mine": reply_to}, grid={"k": [3, 4], "store": ["index", "mine"], "chunk_size": 32})
print([row.key for row in found.cell_rows], [row.key for row in found.question_rows])
print(prompt_address("m", prompt(("user", "Hällo \\ud800")), 1), document_address(["a", "b"]), address("a", {"b": 1}))
"""
    assert run_python(code, PYTHONHASHSEED="1") == run_python(code, PYTHONHASHSEED="2")


def test_borders_cannot_be_moved():
    assert address("a", "b", "c") != address("a", "bc", "")
    assert address("a", ["b", "c"]) != address("a", "b", "c")
    assert address("a", 1) != address("a", "1") != address("a", True)
    assert address("a", None) != address("a", "null")
    assert digest("a", "b") != digest("ab", "") != digest("a", None)
    assert digest(None) != digest("")
    one = prompt(("system", "a"), ("user", "b"))
    for other in [
        prompt(("system", "ab"), ("user", "")),
        prompt(("user", "a"), ("user", "b")),
        prompt(("user", "b"), ("system", "a")),
        prompt(("system", "a\0user\x001\0b")),
    ]:
        assert prompt_address("m", one, 1) != prompt_address("m", other, 1)
    assert prompt_address("m", one, 1) != prompt_address("n", one, 1)
    assert prompt_address("m", one, 1) != prompt_address("m", one, 2)
    assert prompt_address("m1", one, 1) != prompt_address("m", one, 11)


def test_the_step_of_a_prompt_does_not_matter():
    assert prompt_address("m", prompt(("user", "a")), 1) == prompt_address("m", prompt(("user", "a"), step="map"), 1)


def test_documents_and_their_pages_are_told_apart():
    assert document_address("a\n\nb") != document_address(["a", "b"])
    assert document_address(["a", "b"]) == document_address(("a", "b"))
    assert document_address(["a", "b"]) != document_address(["ab"])
    assert document_address("\ud83d") != document_address("�")
    assert document_address("\ud83d\ude00") != document_address("😀")


def test_the_sequence_of_keys_does_not_matter():
    assert address("a", {"b": 1, "c": 2}) == address("a", {"c": 2, "b": 1})


def test_what_has_no_address_is_refused():
    with pytest.raises(TypeError, match="has no address"):
        address("a", object())


def model(text):
    return reply_to(text)


def opened(**changes):
    given = {"models": {"m": ModelSpec(model, "model")}, "grid": {"k": 4, "chunk_size": 32}, **changes}
    return Opened(experiment(**given))


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
        for name, value in {
            "k": 5,
            "chunk_size": 33,
            "chunk_overlap": 1,
            "splitter": "words",
            "search": "bm25",
            "repeat": 2,
            "order": "rank",
            "token_budget": 500,
            "similarity_threshold": 0.1,
            "redundancy_threshold": 0.9,
            "neighbors": 1,
            "stitch": False,
            "separator": "--",
            "gap": "...",
            "header": "{source}",
            "cite": True,
            "method": "refine",
            "empty_answer": "None.",
            "store": "in_memory",
            "max_candidates": 9,
        }.items()
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_ingredient_is_another_cell(name):
    (before,) = opened().cell_rows
    (after,) = opened(**CHANGES[name]).cell_rows
    assert before.key != after.key


def make(**_):
    return model


def test_a_setting_of_a_model_is_another_cell():
    def key(**settings):
        spec = ModelSpec("tests.compare.test_content:make", "model", settings)
        (row,) = opened(models={"m": spec}).cell_rows
        return row.key

    assert key(temperature=0.5, top_p=1) == key(top_p=1, temperature=0.5) != key(temperature=0.6, top_p=1)


def test_another_function_behind_the_name_of_a_store_is_another_cell():
    grid = {**GRID, "store": "mine"}
    (one,) = opened(grid=grid, stores={"mine": model}).cell_rows
    (other,) = opened(grid=grid, stores={"mine": other_store}).cell_rows
    (same,) = opened(grid=grid, stores={"mine": model}).cell_rows
    assert one.key == same.key != other.key


def test_the_other_cells_of_an_experiment_do_not_matter():
    (alone,) = opened().cell_rows
    among = opened(grid={"k": [3, 4], "chunk_size": [32, 64], "method": ["refine", "stuff"]}).cell_rows
    assert alone.key in {row.key for row in among}
    assert len({row.key for row in among}) == 8


def test_names_limits_and_prices_do_not_matter():
    (before,) = opened().cell_rows
    (after,) = opened(
        name="another", limits={"calls": 5}, prices={"m": {"input": 1, "output": 1}}, max_concurrency=3
    ).cell_rows
    assert before.key == after.key


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
    from dataclasses import replace

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
    (before,) = opened(data=DATA).question_rows
    (after,) = opened(data=data).question_rows
    assert (before.key == after.key) == same


def test_what_is_said_about_a_question_is_brought_up_to_date(tmp_path):
    from oprag.compare.running import run
    from tests.compare.helpers import rows

    for kind in ("easy", "hard"):
        run(experiment(model, data=changed(about={"kind": kind}), grid={"k": 1, "chunk_size": 32}), tmp_path / "r.db")
    assert rows(tmp_path / "r.db", "SELECT about FROM questions") == [('{"kind": "hard"}',)]
