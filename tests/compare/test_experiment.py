"""Experiments in Python and in TOML files: they mean the same, and say what is wrong where."""

import re
import tomllib

import pytest

from oprag.cli.compare import read_experiment
from oprag.compare import read_data
from oprag.compare.experiment import Experiment
from oprag.compare.metrics.judge import Judge
from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.run import run
from oprag.compare.spending import Limits, Price
from oprag.errors import DataError, ExperimentError, InputFileError
from tests.compare.folders import EVERYTHING, write_data, write_experiment
from tests.compare.helpers import RecordingModel, experiment, keepers
from tests.compare.made_up_stores import plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "half \ud83d"}, "name must be valid Unicode"),
        ({"metrics": ["token_f1", "token_f1"]}, "two metrics are named 'token_f1'"),
        ({"stores": {"index": plain}}, "'index' is the name of a built-in store"),
        ({"stores": {"mine": lambda embeddings: None}}, "the store 'mine' is a lambda"),
        ({"models": {"m": {"temperature": 1}}}, "models.m.use is missing"),
        ({"grid": {"k": [[5]]}}, "must be a string, number or bool"),
        ({"grid": {"k": 1, "header": print}}, "must be a string, number or bool, got"),
    ],
)
def test_wrong_experiments_are_refused(options, message):
    with pytest.raises(ExperimentError, match=message):
        experiment(None, **{"models": {}, **options})


def test_nothing_is_written_for_an_experiment_that_cannot_be_run(tmp_path):
    broken = experiment(None, models={"m": ModelSpec("nobody:nothing")})
    for wrong, words in ((experiment(None), "model"), (broken, "^model 'm': .*nobody")):
        with pytest.raises(ExperimentError, match=words):
            run(wrong, tmp_path / "results.db")
    assert not list(tmp_path.iterdir())


def test_a_wrong_token_counter_is_refused_before_anything_is_counted():
    with pytest.raises(ExperimentError, match="count_tokens: a token counter must be one of"):
        _ = experiment(None, models={}, count_tokens="abacus").grid_cells


def test_the_answers_to_a_sample_are_used_again(tmp_path):
    model = RecordingModel()
    # Of a sample that is drawn itself.
    drawn = keepers(2, 8).sample(9, seed=3)
    whole = experiment(model, data=drawn, grid={"k": 2, "order": ["source", "rank"]})
    part = whole.replace(data={name: one.sample(4) for name, one in whole.data.items()})
    assert run(part, tmp_path / "r.db").total == 4 * 2
    asked_before = len(model.calls)
    report = run(whole, tmp_path / "r.db")
    assert (report.total, report.complete) == (9 * 2, True)
    assert 0 < asked_before < len(model.calls) == len({*model.calls})


def written(tmp_path, text):
    write_data(tmp_path / "data")
    path = tmp_path / "orders.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path, kind=ExperimentError):
    with pytest.raises(kind) as caught:
        Experiment.from_file(path)
    return str(caught.value)


def test_a_file_with_every_key_is_the_same_experiment_as_in_python(tmp_path):
    path = written(tmp_path, EVERYTHING)
    questions = tmp_path / "data" / "questions.jsonl"
    quick = {"temperature": 0, "max_tokens": 50, "base_url": "http://localhost:1/v1", "max_retries": 4}
    in_python = Experiment(
        name="all of it",
        metrics=("token_f1", "evidence_coverage", "correct"),
        judges={
            "correct": Judge(model="quick", prompt="{question} {answers} {answer}", grades={"good": 1, "bad": 0}),
        },
        count_tokens="words",
        max_concurrency=3,
        give_up_after=7,
        score_embedder={"use": "local"},
        data={
            "book": read_data(questions, name="book").sample(1, seed=5),
            "other": read_data(tmp_path / "data", name="other").sample(1),
        },
        models={"quick": {"use": "openai:gpt-5-mini", **quick}, "small": "local"},
        embedders={"first": EmbedderSpec("local", "first", question_prefix="Find: ", tokenizer="local")},
        prompts={"answer": "{context}\n{question}"},
        prices={"quick": Price(input=0.15, output=0.6), "small": {"input": 0, "output": 0}},
        limits=Limits(calls=10_000, money=10.0),
        grid=[
            {
                "method": ["stuff", "closed_book"],
                "order": ["source", "random"],
                "seed": [1, 2],
                "k": [2],
                "similarity_threshold": [None, 0.3],
                "header": "[{source}]",
                "data": ["book"],
                "model": ["quick"],
            },
            {"method": "context_only", "store": "index", "k": 2, "stitch": False},
        ],
    )
    from_file = Experiment.from_file(path)
    first, second = (PreparedExperiment(one, planned=True) for one in (from_file, in_python))
    assert [cell.values for cell in first.cells] == [cell.values for cell in second.cells]
    assert [row.key for row in first.cell_records] == [row.key for row in second.cell_records]
    assert [row.key for row in first.question_records] == [row.key for row in second.question_records]
    assert len(first.cell_records) == (1 + 2) * 2 + 1 + 2
    for name in ("metrics", "judges", "count_tokens", "max_concurrency", "give_up_after", "prices", "limits", "models"):
        assert getattr(from_file, name) == getattr(in_python, name), name
    assert set(tomllib.loads(EVERYTHING)) == set(Experiment.model_fields) - {"stores", "methods"}


def test_changes_stand_in_place_of_the_file_key_by_key(tmp_path):
    path = write_experiment(tmp_path, 'method = "context_only"\nk = 2', "[limits]\ncalls = 5\ntokens = 6")
    changed, _ = read_experiment(str(path), {"limits": {"calls": 9}, "max_concurrency": 2})
    assert changed.limits == Limits(calls=9, tokens=6)
    assert changed.max_concurrency == 2
    assert Experiment.from_file(path).limits == Limits(calls=5, tokens=6)


# Lines before the table of the data, and what is told about them.
WRONG = {
    'name = " "': "name must not be empty",
    'metrics = ["token_f2"]': "unknown metric 'token_f2'",
    'metrics = "token_f1"': "metrics must be a list, got 'token_f1'",
    "max_concurrency = 0": "max_concurrency must be an integer >= 1, got 0",
    "count_tokens = 3": "count_tokens must be one of approximate",
    "max_concurency = 3": "unknown key 'max_concurency'; did you mean 'max_concurrency'?",
    "score_embedder = 3": 'score_embedder must contain the key use with a name, such as use = "local", got 3',
    "[models.small]\ntemperature = 0": 'models.small must contain the key use with a name, such as use = "local"',
    '[models.small]\nuse = "openai:y"\napi_key = "sk-1"': "models.small.api_key is not one of the settings",
    '[models.small]\nuse = "openai:y"\nreasoning = { api_key = "sk-1" }': "models.small.reasoning is not",
    '[embedders.e]\nuse = "local"\nquestion_prefix = 3': "embedders.e.question_prefix must be a string",
    "[embedders]": "embedders must contain at least 1",
    '[stores]\nmine = "a:b"': "stores.mine must be callable, got 'a:b'",
    '[prompts]\nanswerr = "x"': "unknown prompt 'answerr'",
    "[prices.small]\ninput = 1\noutput = 1": "unknown model or embedder in prices 'small'",
    "[prices.small]\ninput = 1": "prices.small.output is missing",
    "[limits]\ncall = 3": "limits: unknown key 'call'; did you mean 'calls'?",
    "[limits]\ncalls = -3": "limits.calls must be an integer >= 0, got -3",
    '[data.b]\nformat = "oprag"': "data.b: it must be a table with the key path",
    '[data.b]\npath = "data"\nformat = "opragg"': "data.b: format must be one of oprag, infinitebench",
    "[data.b]\npath = 3": "data.b: path must be a string, got 3",
    '[data.b]\npath = "data"\ndocuments = 3': "data.b: documents must be a string, got 3",
    '[data.b]\npath = "data"\nsample = 0': "data.b: sample must be an integer >= 1",
    '[data.b]\npath = "data"\nsampel = 3': "data.b: unknown key 'sampel'; did you mean 'sample'?",
    '[data.b]\npath = "data"\nsplit = "test"': "data.b: unknown key 'split'",
}


@pytest.mark.parametrize("lines", WRONG)
def test_what_is_wrong_is_told_with_its_key(tmp_path, lines):
    name = "" if lines.startswith("name") else 'name = "x"'
    rest = '[data.book]\npath = "data"\n[grid]\nmethod = "context_only"\nk = 2'
    message = refusal(written(tmp_path, f"{name}\n{lines}\n{rest}"))
    assert message.startswith("orders.toml: ")
    assert WRONG[lines] in message
    assert "sk-1" not in message


GRIDS = {
    "ordr = 'source'": "unknown axis 'ordr'; did you mean 'order'?",
    "method = 'context_only'\nk = [2, 0]": "k must be an integer >= 1",
    "token_budget = 'None'": "token_budget must be an integer >= 1 or None, got 'None'",
    "method = 'stuf'": "unknown method 'stuf'; expected one of stuff, map_reduce, refine, map_rerank, step_down, "
    "reciprocal, long_context, self_route, closed_book, context_only",
    "k = []": "the axis 'k' has no values",
    "method = 'stuff'\nk = 2": "method=stuff requires a model",
    "header = { a = 1 }": "a value of an axis must be a string",
}


@pytest.mark.parametrize("grid", GRIDS)
def test_what_is_wrong_in_the_grid_is_told_before_anything_is_run(tmp_path, grid):
    path = written(tmp_path, f'name = "x"\n[data.book]\npath = "data"\n[grid]\n{grid}')
    assert refusal(path).removeprefix("orders.toml: ").removeprefix("grid: ").startswith(GRIDS[grid])


@pytest.mark.parametrize("missing", ["name", "data", "grid"])
def test_what_every_experiment_needs_is_asked_for(tmp_path, missing):
    parts = {"name": 'name = "x"', "data": '[data.b]\npath = "data"', "grid": '[grid]\nmethod = "context_only"\nk = 1'}
    path = written(tmp_path, "\n".join(text for name, text in parts.items() if name != missing))
    assert refusal(path).startswith(f"orders.toml: {missing} is missing; ")


def test_a_syntax_error_is_told_with_line_and_column(tmp_path):
    path = written(tmp_path, 'name = "x"\nk = = 3\n')
    assert re.fullmatch(r"orders\.toml: invalid TOML: .*\(at line 2, column 5\)", refusal(path))


def test_a_file_that_cannot_be_read(tmp_path):
    assert "none.toml" in refusal(tmp_path / "none.toml", InputFileError)
    assert "is a folder" in refusal(tmp_path, InputFileError)
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "caf\xe9"')
    assert "not UTF-8" in refusal(path, InputFileError)
    assert "no such file or folder" in refusal(
        written(tmp_path, 'name = "x"\n[data.b]\npath = "gone"\n[grid]'), InputFileError
    )


def test_wrong_rows_of_the_data_are_told_with_both_files(tmp_path):
    path = write_experiment(tmp_path, 'method = "context_only"\nk = 2')
    questions = tmp_path / "data" / "questions.jsonl"
    questions.write_text(questions.read_text(encoding="utf-8") + "{]\n", encoding="utf-8")
    message = refusal(path, DataError)
    assert message.startswith("harbour.toml: data.book: ")
    assert "line 5" in message
