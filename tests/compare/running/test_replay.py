import pytest

from oprag.compare import prompts_of, run
from oprag.errors import ExperimentError, OptionError, ResultsFileError
from tests.compare.helpers import METHODS, RecordingModel, experiment, keepers, rows

GRID = {"k": 4, "chunk_size": 32, "method": METHODS, "order": ["source", "rank"], "passage_tokens": 60}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    path = tmp_path_factory.mktemp("ran") / "results.db"
    model = RecordingModel()
    assert run(experiment(model, grid=GRID), path).complete
    return path, model


@pytest.mark.parametrize("method", METHODS)
def test_prompts_and_replies_are_those_of_the_run(method, ran):
    path, model = ran
    made = len(model.calls)
    shown = prompts_of(experiment(model, grid=GRID), path, "0-1", method=method, order="rank")
    assert len(model.calls) == made
    replies = rows(
        path,
        "SELECT call.value ->> 0, replies.text FROM answers, json_each(answers.replies) AS call JOIN replies "
        "ON replies.key = call.value ->> 1 JOIN cells ON cells.key = cell JOIN questions "
        "ON questions.key = answers.question WHERE \"values\" ->> 'method' = ? AND \"values\" ->> 'order' = 'rank' "
        "AND questions.name = '0-1' ORDER BY call.key",
        method,
    )
    assert [(prompt.step, prompt.reply) for prompt in shown] == replies
    assert all(any(message.content in call for call in model.calls) for prompt in shown for message in prompt.messages)


def test_nothing_is_written(ran):
    path, model = ran
    before = rows(path, "SELECT count(*) FROM runs"), rows(path, "SELECT count(*) FROM chunks")
    prompts_of(experiment(model, grid=GRID), path, "0-1", method="stuff", order="source")
    assert before == (rows(path, "SELECT count(*) FROM runs"), rows(path, "SELECT count(*) FROM chunks"))


def test_what_is_not_there_is_refused(ran, tmp_path):
    path, model = ran
    small = experiment(model, grid=GRID)
    with pytest.raises(ExperimentError, match="'0-1' with method='stuff' matches 2 cells; give values of more axes"):
        prompts_of(small, path, "0-1", method="stuff")
    with pytest.raises(ExperimentError, match="'9-9' with no axis values matches no cell"):
        prompts_of(small, path, "9-9")
    with pytest.raises(OptionError, match="sequence"):
        prompts_of(small, path, "0-1", sequence="source")
    other = experiment(model, grid=GRID, data=keepers(words=80))
    with pytest.raises(ResultsFileError, match="from these documents and prompts: some of its replies"):
        prompts_of(other, path, "0-1", method="stuff", order="source")
    with pytest.raises(ResultsFileError, match="results file not found"):
        prompts_of(small, tmp_path / "none.db", "0-1", method="stuff", order="source")
    assert not (tmp_path / "none.db").exists()
