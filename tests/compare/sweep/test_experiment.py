from typing import Any

import pytest

from oprag import ExperimentError, OptionError
from oprag.compare import DataSet, EmbedderSpec, Evidence, ModelSpec, Question, read_data, sweep_experiment
from oprag.compare.providers.names import tokenizer_of
from oprag.index.splitting import Split, pieces_of
from oprag.tokens import approximate_tokens
from tests.compare.folders import write_data
from tests.compare.helpers import Words
from tests.compare.ledgers import reader, write_ledgers


@pytest.fixture
def data(tmp_path):
    book, asked = write_ledgers(tmp_path)
    return read_data(asked, documents=book)


@pytest.mark.parametrize(
    ("text", "tokens"), [("1k", 1024), ("16K", 16_384), (" 48k ", 49_152), ("1500", 1500), ("10_000", 10_000)]
)
def test_budgets_as_people_write_them(data, text, tokens):
    assert sweep_experiment(data, budgets=[text]).grid[0]["token_budget"] == [tokens]


@pytest.mark.parametrize("text", ["", "0", "0k", "-1k", "1.5k", "1m", "k", "1k,2k", "½k"])
def test_what_is_no_budget_is_refused(data, text):
    with pytest.raises(OptionError, match="a budget must be a number of tokens such as 1500 or 16k"):
        sweep_experiment(data, budgets=[text])


def test_every_budget_in_every_order_and_nothing_else_differs(data):
    experiment = sweep_experiment(data)
    cells = experiment.grid_cells.cells
    assert {(cell.context_options.token_budget, cell.context_options.order) for cell in cells} == {
        (budget * 1_024, order) for budget in (1, 2, 4, 8, 16, 24, 32, 48) for order in ("source", "rank", "random")
    }
    assert len(cells) == 8 * (1 + 1 + 3)
    # As many candidates for each.
    assert len({cell.context_options.k for cell in cells}) == 1
    assert {cell.method for cell in cells} == {"context_only"}


def test_budgets_and_orders_are_taken_once_and_in_sequence(data):
    experiment = sweep_experiment(data, budgets=[200, 100, 200], orders=["rank", "source", "rank"], seeds=1)
    cells = experiment.grid_cells.cells
    assert sweep_experiment(data, budgets=["1k", 1024, "2k"]).grid[0]["token_budget"] == [1024, 2048]
    assert [(cell.context_options.token_budget, cell.context_options.order) for cell in cells] == [
        (100, "rank"),
        (100, "source"),
        (200, "rank"),
        (200, "source"),
    ]


def test_other_axes_have_one_value(data):
    experiment = sweep_experiment(data, budgets=[100], grid={"splitter": "words", "chunk_size": 30, "neighbors": 1})
    (cell, *_) = experiment.grid_cells.cells
    assert (cell.split.splitter, cell.split.size, cell.context_options.neighbors) == ("words", 30, 1)
    (cell, *_) = sweep_experiment(data, budgets=[100], grid={"k": 7}).grid_cells.cells
    assert cell.context_options.k == 7
    with pytest.raises(
        OptionError, match=r"a sweep takes only one value of neighbors, got \[0, 1\]; use an experiment to vary it"
    ):
        sweep_experiment(data, grid={"neighbors": [0, 1]})


def test_what_is_scored_fits_the_questions(data, tmp_path):
    model = ModelSpec(reader(), name="reader")
    assert sweep_experiment(data).metrics == ("evidence_coverage",)
    assert sweep_experiment(data, model=model).metrics == ("token_f1", "evidence_coverage")
    asked = tmp_path / "choices.jsonl"
    asked.write_text('{"question": "Which?", "choices": ["a", "b"], "right_choice": 1, "text": "It is b."}\n')
    choices = read_data(asked)
    assert sweep_experiment(choices, model=model).metrics[0] == "choice_accuracy"
    with pytest.raises(ExperimentError, match="no question has evidence; set a model"):
        sweep_experiment(choices)
    asked.write_text('{"question": "Which?", "text": "It is b."}\n')
    with pytest.raises(ExperimentError, match="no question has a gold answer"):
        sweep_experiment(read_data(asked), model=model)


@pytest.mark.parametrize("empty", [{"budgets": []}, {"orders": []}])
def test_without_budgets_or_orders_there_is_no_sweep(data, empty):
    with pytest.raises(OptionError, match="budgets and orders must not be empty"):
        sweep_experiment(data, **empty)


def test_questions_that_name_a_document_keep_it(tmp_path):
    folder = write_data(tmp_path / "data")
    (tmp_path / "other.md").write_text("Nothing about it.", encoding="utf-8")
    data = read_data(folder / "questions.jsonl", documents=tmp_path / "other.md")
    assert {question.documents for question in data.questions} == {("book0.md",)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budgets": 1024}, r"budgets must be a list such as \[1024, 4096\], got 1024"),
        ({"budgets": "1k,4k"}, "budgets must be a list"),
        ({"budgets": ["1x"]}, "a budget must be a number of tokens such as 1500 or 16k"),
        ({"budgets": [0]}, "a budget must be an integer >= 1"),
        ({"budgets": [True]}, "a budget must be an integer >= 1"),
        ({"budgets": [1.5e3]}, "a budget must be an integer >= 1"),
        ({"orders": "source"}, "orders must be a list"),
        ({"orders": [1]}, "invalid value 1 of the axis 'order'"),
        ({"seeds": "3"}, "seeds must be an integer >= 1"),
        ({"grid": {"chunk_size": "a"}}, "chunk_size must be an integer >= 1"),
        ({"grid": {"chunk_overlap": -1}}, "chunk_overlap must be an integer >= 0"),
        ({"grid": {"order": "rank"}}, "grid must not contain order; use the argument orders= of the sweep"),
        ({"grid": {"token_budget": 5}}, "grid must not contain token_budget; use the argument budgets= of the sweep"),
        ({"grid": {"method": "closed_book"}}, "grid must not contain method"),
        ({"grid": {"neighbors": range(2)}}, "a sweep takes only one value of neighbors"),
        ({"grid": ["neighbors"]}, "grid must map axes to their values"),
        ({"grid": {"splitter": "letters"}}, "splitter must be one of"),
        ({"method": "refine"}, "method=refine requires a model"),
        ({"method": 3, "model": "local"}, "method must be the name of a method"),
        ({"metric": 3}, "a metric must be a name or a function"),
        ({"method": "step_down", "grid": {"inner_method": "long_context"}, "model": "local"}, "inner_method=long_con"),
        ({"method": "closed_book", "model": "local"}, "cannot be swept over token budgets"),
    ],
)
def test_what_cannot_be_is_told_in_words(data, options, words):
    with pytest.raises((OptionError, ExperimentError), match=words):
        sweep_experiment(data, **options)
    path: Any = "book.txt"
    with pytest.raises(OptionError, match="data must be a data set"):
        sweep_experiment(path, **options)


def test_a_metric_must_have_something_to_score(data, tmp_path):
    asked = tmp_path / "bare.jsonl"
    asked.write_text('{"question": "Which?", "text": "It is b."}\n', encoding="utf-8")
    bare = read_data(asked)
    model = ModelSpec(reader(), name="reader")
    for metric, what in (
        ("token_f1", "gold answers"),
        ("rouge_l", "gold answers"),
        ("evidence_coverage", "evidence"),
    ):
        with pytest.raises(OptionError, match=f"{metric} cannot be computed with method=stuff: no question has {what}"):
            sweep_experiment(bare, model=model, metric=metric)
    with pytest.raises(OptionError, match="token_f1 cannot be computed with method=context_only: no method"):
        sweep_experiment(data, metric="token_f1")
    assert sweep_experiment(data, model=model, metric="evidence_coverage").metrics == ("evidence_coverage",)


@pytest.mark.parametrize(
    ("given", "costs"),
    [
        ("local", False),
        ("ollama:qwen3", False),
        ("ollama:gpt-oss:120b-cloud", True),
        ("openai:gpt-5-mini", True),
        ("gpt-5-mini", True),
        (reader(), False),
    ],
)
def test_what_may_cost_money(given, costs):
    assert ModelSpec(given).may_cost is costs


def test_models_and_embedders_have_the_names_that_they_were_given(data):
    for embedder, model, names in (
        (EmbedderSpec(Words(), "my-words"), ModelSpec(reader(), name="my-model"), ("my-words", "my-model")),
        (Words("theirs"), reader(), ("embedder", "model")),
        ("local", "ollama:qwen3", ("local", "ollama:qwen3")),
    ):
        experiment = sweep_experiment(data, budgets=[60], embedder=embedder, model=model)
        assert (*experiment.embedders, *experiment.models) == names
        assert {cell.embedder for cell in experiment.grid_cells.cells} == {names[0]}


# How many candidates there are, so that the budget decides how many chunks are kept

PROSE = "The harbour of Aldmere has nine cranes, and its lamp burns by night until the last ship is in. " * 900
NUMBERS = "\n".join(" ".join(f"{row * column % 977 / 10:.1f}" for column in range(12)) for row in range(2_000))
RAGGED = "\n\n".join("So it is. " * (1 + row * 7 % 40) for row in range(900))


def candidates(documents, budget, **grid):
    evidence = (Evidence(next(iter(documents)), 0, 1),)
    question = Question(id="1", text="What is there?", documents=tuple(documents), evidence=evidence)
    data = DataSet(name="set", documents=documents, questions=[question])
    (k,) = sweep_experiment(data, budgets=[budget], grid=grid).grid[0]["k"]
    return k


@pytest.mark.parametrize("document", [PROSE, NUMBERS, RAGGED])
@pytest.mark.parametrize("split", [Split(), Split("words", 40), Split("recursive", 100), Split("recursive")])
def test_the_shorter_half_of_the_chunks_fills_the_budget(document, split):
    pieces = pieces_of({"a": document}, tokenizer_of("local").tokenizer, split)
    found = sorted(approximate_tokens(window.text) for window, _ in pieces)
    shorter = found[: len(found) // 2]
    k = candidates({"a": document}, 8_192, splitter=split.splitter, chunk_size=split.size)
    tokens = k * sum(shorter) / len(shorter)
    # And hardly more than that: each candidate takes time.
    assert 1.2 * 8_192 < tokens < 1.9 * 8_192


def test_a_long_document_is_sampled_all_over():
    # Prose in front, where a title page would be all there is to see of it.
    long = {"a": PROSE * 5 + NUMBERS * 8}
    k = candidates(long, 8_192)
    assert k > 1.4 * candidates({"a": PROSE}, 8_192)
    assert k == candidates(long, 8_192)


def test_short_documents_are_chunks_of_their_own():
    assert candidates({str(number): "Nine cranes." for number in range(200)}, 300) == 150


def test_pages_are_one_document():
    assert candidates({"a": [PROSE, PROSE]}, 1) == 1
