import pickle

import pytest

from oprag.compare.data.data_set import DataSet, Question
from oprag.compare.providers.model import ModelSpec
from oprag.compare.running.run import run
from oprag.errors import ExperimentError
from tests.compare.helpers import RecordingModel, experiment, keepers, reply_to, rows
from tests.compare.made_up_stores import plain


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"name": " "}, ExperimentError, "name must not be empty"),
        ({"name": "half \ud83d"}, ExperimentError, "name must be valid Unicode"),
        ({"name": None}, ExperimentError, "name must be a string"),
        ({"embedders": {}}, ExperimentError, "embedders must contain at least 1"),
        ({"max_concurrency": 0}, ExperimentError, "max_concurrency must be"),
        ({"give_up_after": 0}, ExperimentError, "give_up_after must be"),
        ({"metrics": ["f1"]}, ExperimentError, "unknown metric 'f1'"),
        ({"metrics": "token_f1"}, ExperimentError, "metrics must be a list, got 'token_f1'"),
        ({"metrics": []}, ExperimentError, "metrics must contain at least 1"),
        ({"metrics": [["token_f1"]]}, ExperimentError, "a metric must be a name or a function"),
        ({"metrics": ["token_f1", "token_f1"]}, ExperimentError, "two metrics are named 'token_f1'"),
        ({"prompts": {"answr": "x"}}, ExperimentError, "unknown prompt .answr."),
        ({"stores": {"index": plain}}, ExperimentError, "'index' is the name of a built-in store"),
        ({"stores": {"mine": lambda embeddings: None}}, ExperimentError, "the store 'mine' is a lambda"),
        ({"stores": {"mine": "chroma"}}, ExperimentError, "stores.mine must be callable, got 'chroma'"),
        ({"models": {"m": {"temperature": 1}}}, ExperimentError, "models.m: it must contain the key use"),
        ({"grid": {"kk": 1}}, ExperimentError, "unknown axis 'kk'"),
    ],
)
def test_wrong_experiments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        experiment(None, **{"models": {}, **options})


def test_a_wrong_token_counter_is_refused_before_anything_is_counted():
    with pytest.raises(ExperimentError, match="count_tokens: a token counter must be one of"):
        _ = experiment(None, models={}, count_tokens="abacus").grid_cells


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "data must be a mapping, got None"),
        ({}, "data must contain at least 1"),
        ([], "data must be a mapping"),
        ({"set": "a path"}, "data.set must be an instance of DataSet, got 'a path'"),
    ],
)
def test_data_must_be_data_sets(wrong, message):
    from oprag.compare.experiment import Experiment

    with pytest.raises(ExperimentError, match=message):
        Experiment(name="a", data=wrong, grid={"k": 1})


def test_an_experiment_goes_to_another_process():
    given = experiment(reply_to, grid={"k": 4})
    assert len(given.grid_cells.cells) == 1
    assert pickle.loads(pickle.dumps(given)).grid_cells == given.grid_cells


def test_pages_without_text_and_questions_without_documents_are_no_obstacle(tmp_path):
    some = DataSet(
        name="set",
        documents={"empty": "", "pages": ["", "  "], "text": "Some words."},
        questions=[
            Question(id=str(number), text=f"What {number}?", documents=names, answers=("words",))
            for number, names in enumerate([(), ("empty",), ("pages",), ("empty", "text"), ("empty", "pages")])
        ],
    )
    model = RecordingModel()
    grid = {"k": 3, "method": ["stuff", "map_reduce", "long_context", "self_route"], "search": ["dense", "bm25"]}
    report = run(experiment(model, data=some, grid=grid), tmp_path / "r.db")
    assert report.complete
    found = rows(tmp_path / "r.db", "SELECT DISTINCT question_id FROM results WHERE calls = 0 ORDER BY 1")
    assert {name for (name,) in found} >= {"0", "1"}


def test_several_data_sets_and_models_are_combined(tmp_path):
    first, second = keepers(1, 2), keepers(1, 3)
    models = {name: ModelSpec(RecordingModel(), name) for name in ("m", "n")}
    small = experiment(
        None, data=first, models=models, grid={"k": 2, "chunk_size": 32, "data": "keepers", "model": ["m", "n"]}
    )
    both = small.replace(data={"keepers": first, "others": second}, grid=[{"k": 2, "model": ["m", "n"]}])
    assert run(small, tmp_path / "a.db").total == 4
    report = run(both, tmp_path / "b.db")
    assert report.complete
    assert rows(tmp_path / "b.db", "SELECT data, model, count(*) FROM results GROUP BY 1, 2") == [
        *[("keepers", "m", 2), ("keepers", "n", 2), ("others", "m", 3), ("others", "n", 3)]
    ]


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
