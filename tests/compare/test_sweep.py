"""The experiment of a sweep, and what its results say."""

from typing import Any

import pytest

from oprag._internal.tokens import approximate_tokens
from oprag.compare import DataSet, Evidence, ModelSpec, Question, compare, read_data, sweep_experiment
from oprag.errors import ExperimentError, OptionError
from oprag.index.splitting import Split, pieces_of
from oprag.index.tokenizers import tokenizer_named
from tests.compare.spending import reader, write_ledgers

WORDS = {"splitter": "words", "chunk_size": 14}
MODELS = {"reader": ModelSpec(reader(), name="reader")}


@pytest.fixture
def data(tmp_path):
    book, asked = write_ledgers(tmp_path)
    return read_data(asked, documents=book)


def contexts(experiment):
    return [(cell.context_options.token_budget, cell.context_options.order) for cell in experiment.grid_cells.cells]


# The experiment


def test_budgets_reach_from_a_chunk_to_the_whole_documents():
    text = "The harbour of Aldmere has nine cranes, and its lamp burns by night until the last ship is in. "

    def budgets(repeated, **grid):
        evidence = (Evidence("book", 0, 1),)
        question = Question(id="1", text="What is there?", documents=("book",), evidence=evidence)
        documents = {"book": text * repeated, "other": text * 10_000}
        data = DataSet(name="set", documents=documents, questions=[question])
        return [value // 1_024 for value in sweep_experiment(data, grid=grid).grid[0]["token_budget"]]

    # About 24 tokens each; the other document is read for no question.
    assert budgets(10_000) == [1, 2, 4, 8, 16, 24, 32, 48]
    assert budgets(500) == [1, 2, 4, 8, 16]
    assert budgets(1) == [1]
    assert budgets(500, chunk_size=2_500) == [4, 8, 16]
    assert budgets(500, token_budget=[65_536, 2_048]) == [64, 2]


def test_every_budget_in_every_order_and_nothing_else_differs(data):
    experiment = sweep_experiment(data, grid={"token_budget": [200, 100]})
    assert contexts(experiment) == [
        (budget, order) for budget in (200, 100) for order in ("source", "rank", "random", "random", "random")
    ]
    cells = experiment.grid_cells.cells
    # As many candidates for each.
    assert len({cell.context_options.k for cell in cells}) == 1
    assert {cell.method for cell in cells} == {"context_only"}
    assert experiment.name == "sweep"


def test_what_is_given_replaces_the_defaults(data):
    grid = {"token_budget": 100, "order": "rank", "splitter": "words", "chunk_size": [14, 30], "neighbors": 1}
    experiment = sweep_experiment(data, grid=grid, name="mine", max_concurrency=2)
    assert contexts(experiment) == [(100, "rank")] * 2
    assert {cell.split.size for cell in experiment.grid_cells.cells} == {14, 30}
    assert {cell.context_options.neighbors for cell in experiment.grid_cells.cells} == {1}
    assert (experiment.name, experiment.max_concurrency) == ("mine", 2)
    (cell,) = sweep_experiment(data, grid={"k": 7, "token_budget": 100, "order": "rank"}).grid_cells.cells
    assert cell.context_options.k == 7


def test_what_is_scored_fits_the_questions(data, tmp_path):
    assert sweep_experiment(data).metrics == ("evidence_coverage",)
    experiment = sweep_experiment(data, models=MODELS)
    assert experiment.metrics == ("token_f1", "evidence_coverage")
    assert {cell.method for cell in experiment.grid_cells.cells} == {"stuff"}
    asked = tmp_path / "choices.jsonl"
    asked.write_text('{"question": "Which?", "choices": ["a", "b"], "right_choice": 1, "text": "It is b."}\n')
    choices = read_data(asked)
    assert sweep_experiment(choices, models=MODELS).metrics[0] == "choice_accuracy"
    with pytest.raises(OptionError, match="a score of evidence_coverage: no question has evidence"):
        sweep_experiment(choices)
    asked.write_text('{"question": "Which?", "text": "It is b."}\n')
    with pytest.raises(OptionError, match="no answer would have a score of choice_accuracy: no question has"):
        sweep_experiment(read_data(asked), models=MODELS)
    with pytest.raises(OptionError, match="a score of rouge_l: no question has gold answers"):
        sweep_experiment(read_data(asked), models=MODELS, metrics=["rouge_l"])
    for method in ("closed_book", "long_context"):
        with pytest.raises(OptionError, match=f"method={method} cannot be swept"):
            sweep_experiment(data, grid={"method": method}, models=MODELS)
    with pytest.raises(OptionError, match="a score of token_f1: no method produces an answer"):
        sweep_experiment(data, metrics=["token_f1"])


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"token_budget": "16k"}, "token_budget must be an integer >= 1 or None, got '16k'"),
        ({"order": []}, "the axis 'order' has no values"),
        ({"chunk_size": "a"}, "chunk_size must be an integer >= 1, got 'a'"),
        (["neighbors"], "a grid must map axes to values"),
        ({"method": "refine"}, "method=refine requires a model"),
    ],
)
def test_what_cannot_be_is_told_in_words(data, grid: Any, words):
    with pytest.raises((OptionError, ExperimentError), match=words):
        sweep_experiment(data, grid=grid)
    path: Any = "book.txt"
    with pytest.raises(OptionError, match="data must be a data set"):
        sweep_experiment(path, grid=grid)


# How many candidates there are, so that the budget decides how many chunks are kept

PROSE = "The harbour of Aldmere has nine cranes, and its lamp burns by night until the last ship is in. " * 900
NUMBERS = "\n".join(" ".join(f"{row * column % 977 / 10:.1f}" for column in range(12)) for row in range(2_000))
RAGGED = "\n\n".join("So it is. " * (1 + row * 7 % 40) for row in range(900))


def candidates(documents, budget, **grid):
    evidence = (Evidence(next(iter(documents)), 0, 1),)
    question = Question(id="1", text="What is there?", documents=tuple(documents), evidence=evidence)
    data = DataSet(name="set", documents=documents, questions=[question])
    (k,) = sweep_experiment(data, grid={"token_budget": budget, **grid}).grid[0]["k"]
    return k


@pytest.mark.parametrize("document", [PROSE, NUMBERS, RAGGED])
@pytest.mark.parametrize("split", [Split(), Split("words", 40), Split("recursive", 100), Split("recursive")])
def test_the_shorter_half_of_the_chunks_fills_the_budget(document, split):
    pieces = pieces_of({"a": document}, tokenizer_named("local").tokenizer, split)
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


# Its results


def test_the_control_is_not_deployed_and_ties_go_to_source(data, tmp_path):
    for orders, chosen in (["random", "rank", "source"], "source"), (["random"], "random"):
        # Not stitched, the whole book is as many tokens in any order.
        grid = {"token_budget": [9_000, 18_000], "order": orders, "stitch": False, **WORDS}
        experiment = sweep_experiment(data.sample(6), grid=grid, name=chosen, count_tokens=count_characters)
        deployed = compare(experiment, tmp_path / "sweep.db").deployed()
        assert (deployed.values["order"], deployed.values["token_budget"]) == (chosen, 9_000)
        profile = deployed.profile()
        assert (profile.context["order"], "count_tokens" in profile.context) == (chosen, False)
        assert "test_sweep:count_characters, which cannot be stored in a profile" in profile.about["count_tokens"]


def count_characters(text):
    return len(text)
