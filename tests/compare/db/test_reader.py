import sqlite3
from contextlib import closing
from typing import Any

import pytest

from oprag.compare.db.reader import ResultsReader
from oprag.compare.providers.model import ModelSpec
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.run import run
from oprag.errors import ExperimentError, ResultsFileError
from tests.compare.answering import LEAKED
from tests.compare.helpers import RecordingModel, experiment
from tests.compare.judging import judging_models, serving

GRID = [{"k": [2, 3], "chunk_size": 32, "order": ["source", "rank"], "stitch": False}, {"method": "closed_book"}]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ran") / "results.db"
    model = RecordingModel(fails=lambda text, before: "keeper of the cedar number 1?" in text)
    assert run(experiment(model, grid=GRID), path).outcome == "complete"
    return path


def changed(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(statement, values)


def test_answers_and_scores_tell_their_places(path):
    with ResultsReader(path) as reader:
        assert reader.name == "small"
        assert [cell.values["k"] for cell in reader.cells] == [2, 2, 3, 3, None]
        assert [cell.values.get("stitch", True) for cell in reader.cells] == [False] * 4 + [True]
        assert all(cell.identity for cell in reader.cells)
        answers = {(one.cell, one.question): one for one in reader.answers()}
        cells = [cell.key for cell in reader.cells]
        assert answers.keys() == {(cell, question.key) for cell in cells for question in reader.questions}
        failed = {place for place, one in answers.items() if one.failed}
        (asked,) = [question.key for question in reader.questions if question.name == "1-2"]
        assert failed == {(cell, asked) for cell in cells}
        assert {answers[place].error for place in failed} == {"ConnectionRefusedError"}
        assert {place for place, one in answers.items() if "token_f1" in one.scores} == answers.keys() - failed


def test_contexts_refer_to_the_chunks_of_their_index(path):
    with ResultsReader(path) as reader:
        cells = {cell.key: cell for cell in reader.cells}
        documents = {question.key: question.documents for question in reader.questions}
        stored = [(one, one.context) for one in reader.answers() if one.context is not None]
        assert len(stored) == 4 * 5
        for answer, context in stored:
            assert len(context.kept) == cells[answer.cell].values["k"]
            pieces = reader.index(context.index_key).pieces
            assert {pieces[row].document for row, _, _ in context.kept} == {*documents[answer.question]}


def test_failures_notes_and_runs(path):
    with ResultsReader(path) as reader:
        (failure,) = reader.failures()
        assert (failure.error, failure.count) == ("ConnectionRefusedError", 5)
        assert reader.cores() == ()
        (one,) = reader.runs()
        assert one.outcome == "complete"
        assert one.ended is not None
        assert one.ended >= one.started
        assert "oprag" in one.versions


def test_spending_is_told_by_model_and_adds_up(tmp_path):
    path = tmp_path / "results.db"
    models = {
        name: ModelSpec(RecordingModel(fails=lambda text, before: "cedar number 1?" in text), name)
        for name in ("one", "two")
    }
    prices = {"one": {"input": 1, "output": 2}, "two": {"input": 3, "output": 4}}
    small = experiment(None, models=models, prices=prices, grid={"model": ["one", "two"], "k": 3, "chunk_size": 32})
    report = run(small, path)
    assert report.failed
    run(experiment(RecordingModel(), name="another", grid={"k": 2, "chunk_size": 16}), path)
    with ResultsReader(path, small.name) as reader:
        spending = reader.spending()
        one, two = ((model.identity, "answers") for model in PreparedExperiment(small).models.values())
        assert set(spending) == {one, two}
        assert reader.spent().calls == report.spent.calls == sum(spent.calls for spent in spending.values())
        assert reader.spent().tokens == report.spent.tokens
        assert reader.spent().money == pytest.approx(report.spent.money)
        assert spending[one].money < spending[two].money


def test_what_judges_are_asked_is_told_by_itself(tmp_path):
    path = tmp_path / "results.db"
    judged: dict[str, Any] = {"metrics": ["token_f1", "correct"], "judges": {"correct": {"model": "judge"}}}
    with serving() as served:
        small = experiment(models=judging_models(served), grid={"k": 3, "chunk_size": 32, "model": "reader"}, **judged)
        assert run(small, path).complete
    with ResultsReader(path) as reader:
        calls = {(model.rpartition(" ")[2], asked): spent.calls for (model, asked), spent in reader.spending().items()}
    assert sorted(asked for _, asked in calls) == ["answers", "correct"]
    assert sorted(calls.values()) == sorted(served.calls.values())


def test_a_reader_sees_one_state_of_the_file(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(RecordingModel(), grid={"k": 2, "chunk_size": 32}), path)
    with ResultsReader(path) as reader:
        before = [*reader.answers()]
        changed(path, "DELETE FROM answers")
        assert [*reader.answers()] == before
    with ResultsReader(path) as reader:
        assert [*reader.answers()] == []


def test_questions_of_another_experiment_play_no_part(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(RecordingModel(), grid={"k": [2, 3], "chunk_size": 32}), path)
    run(experiment(RecordingModel(), grid={"k": 3, "chunk_size": 32}, name="other"), path)
    keep = "(SELECT json_array(questions ->> 0, questions ->> 1))"
    changed(path, f"UPDATE experiments SET questions = {keep} WHERE name = 'other'")
    with ResultsReader(path, "other") as reader:
        assert len(reader.cells) == 1
        assert len(reader.questions) == 2
        assert {one.question for one in reader.answers()} == {question.key for question in reader.questions}
    with pytest.raises(ExperimentError, match="has several experiments; specify one of: small, other"):
        ResultsReader(path).__enter__()
    with pytest.raises(ExperimentError, match="has no experiment 'third'; specify one of: small, other"):
        ResultsReader(path, "third").__enter__()


def test_secrets_in_files_of_others_are_masked_when_they_are_read(path, tmp_path):
    theirs = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(theirs)) as other:
        connection.backup(other)
    changed(theirs, "UPDATE answers SET message = ? WHERE status = 'failed'", f"no access with {LEAKED}")
    changed(theirs, "UPDATE runs SET outcome = ?", f"no access with {LEAKED}")
    with ResultsReader(theirs) as reader:
        told = [*reader.answers(), *reader.failures(), *reader.runs()]
    assert "no access with" in str(told)
    assert LEAKED not in str(told)


def test_an_invalid_row_is_told_without_its_values(path, tmp_path):
    theirs = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(theirs)) as other:
        connection.backup(other)
    changed(theirs, "UPDATE runs SET versions = ?", f'{{"oprag": ["{LEAKED}"]}}')
    with (
        ResultsReader(theirs) as reader,
        pytest.raises(ResultsFileError, match=r"is corrupt \(invalid versions: ") as raised,
    ):
        reader.runs()
    assert LEAKED not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
