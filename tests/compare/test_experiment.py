import pytest

from oprag.compare.running.run import run
from oprag.errors import ExperimentError
from tests.compare.helpers import RecordingModel, experiment, keepers
from tests.compare.made_up_stores import plain


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"name": " "}, ExperimentError, "name must not be empty"),
        ({"name": "half \ud83d"}, ExperimentError, "name must be valid Unicode"),
        ({"embedders": {}}, ExperimentError, "embedders must contain at least 1"),
        ({"max_concurrency": 0}, ExperimentError, "max_concurrency must be"),
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
