import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oprag.compare.db.records import (
    CELL_COLUMNS,
    AnswerRecord,
    CellRecord,
    FailedCall,
    QuestionRecord,
    Reply,
    Spent,
    error_message,
)
from oprag.compare.db.results_file import ResultsFile, ResultsReader
from oprag.compare.plan import make_plan
from oprag.compare.providers.specs import ModelSpec
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.run import run
from oprag.errors import ExperimentError, ResultsFileError
from oprag.methods.answer import Usage
from tests.compare.answering import LEAKED
from tests.compare.helpers import METHODS, Judged, RecordingModel, experiment, reply_to, rows

GRID = {"k": 4, "chunk_size": 32, "method": METHODS}
SELECT = "SELECT question_id, method, status, answer, calls, input_tokens, scores FROM results ORDER BY 1, 2"
USAGE = Usage(7, 3, 2)
KEY = "a" * 32


def reply(key=KEY, text="yes", usage=USAGE, **others):
    given = {"model": "m", "step": "answer", "finish_reason": "stop", "seconds": 0.5, "money": 0.25, **others}
    return Reply(key=key, text=text, usage=usage, **given)


def changed(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        return connection.execute(statement, values).rowcount


def flushed(path):
    """The size of a file that has everything that was written."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


@pytest.fixture
def file(tmp_path):
    file = ResultsFile(tmp_path / "results.db")
    file.begin("small", {}, [], [], {})
    yield file
    file.close()


# Cached work


def test_replies_come_back_as_they_were_and_the_first_of_two_is_kept(file):
    given = reply(text="with\0zero, ünïcode 🜚 and\nlines", usage=Usage(7, 3, 2, estimated=True))
    assert file.put_reply(given) == given
    assert file.put_reply(reply(text="second")) == given
    assert ResultsFile(file.path).reply(KEY) == given
    assert file.reply("b" * 32) is None
    assert file.spent("small") == Spent(1, 10, 0.25)
    assert file.spent("another").calls == 0


def test_failed_calls_count_and_are_kept_each(file):
    for _ in range(2):
        file.put_failure(FailedCall(KEY, "m", "answer", "TimeoutError", "too slow", 1.5))
    assert file.spent("small").calls == 2
    stored = rows(file.path, "SELECT error, message, seconds FROM failed_calls")
    assert stored == [("TimeoutError", "too slow", 1.5)] * 2


def test_vectors_come_back_and_a_bad_one_is_made_again(file):
    given = np.array([[number, -0.1] for number in range(3)], np.float32)
    file.put_vectors("words", [b"0", b"1", b"2"], given)
    one, none, other = file.vectors("words", [b"2", b"4", b"0"])
    assert none is None
    assert (one.tolist(), other.tolist()) == (given[2].tolist(), given[0].tolist())
    assert file.vectors("others", [b"0"]) == [None]
    with pytest.raises(ResultsFileError, match="dimension 2 for the embedder 'words', got dimension 3"):
        file.put_vectors("words", [b"5"], np.ones((1, 3), np.float32))
    for bad in ("x'00'", "x'0000c07f0000803f'"):  # another length, NaN
        changed(file.path, f"UPDATE vectors SET vector = {bad} WHERE hash = ?", b"1")
        assert file.vectors("words", [b"1"]) == [None]
    file.put_vectors("words", [b"1"], given[1:2])
    assert file.vectors("words", [b"1"])[0].tolist() == given[1].tolist()


def test_nothing_is_written_before_a_run(tmp_path):
    file = ResultsFile(tmp_path / "results.db")
    assert (file.reply("a"), file.vectors("words", [b"1"])) == (None, [None])
    assert file.outcomes("small") == {}
    assert file.spent("small") == Spent()
    assert not list(tmp_path.iterdir())


def test_messages_are_one_line_as_long_as_wanted():
    assert error_message(ValueError("a\n  b\tc \ud800")) == "a b c \ufffd"
    assert error_message(ValueError("abcdef"), 3) == "abc"


@pytest.mark.parametrize("kind", ["failed call", "outcome", "failed answer"])
def test_secrets_in_messages_are_masked_when_they_are_written(file, kind):
    said = f"no access with {LEAKED}"
    if kind == "failed call":
        file.put_failure(FailedCall(KEY, "m", "answer", "TimeoutError", said, 1.5))
    elif kind == "outcome":
        file.end(said)
    else:
        cell, question = "c" * 32, "d" * 32
        asked = QuestionRecord(question, "data", "1", "What?", [], [], None, [], {}, {})
        file.begin("small", {}, [CellRecord(cell, {}, {})], [asked], {})
        file.put_answers([AnswerRecord(cell=cell, question=question, error="E", message=said, notes=[said, '"\ud800'])])
        ((notes,),) = rows(file.path, "SELECT notes FROM answers")
        assert json.loads(notes)[1] == '"\ufffd'
    file.close()
    assert LEAKED.encode() not in file.path.read_bytes()


# Reading an experiment

ASKED = [{"k": [2, 3], "chunk_size": 32, "order": ["source", "rank"], "stitch": False}, {"method": "closed_book"}]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ran") / "results.db"
    model = RecordingModel(fails=lambda text, before: "keeper of the cedar number 1?" in text)
    assert run(experiment(model, grid=ASKED), path).outcome == "complete"
    return path


@pytest.fixture
def theirs(path, tmp_path):
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(tmp_path / "theirs.db")) as other:
        connection.backup(other)
    return tmp_path / "theirs.db"


def test_the_views_have_the_columns_that_are_documented(path):
    with closing(sqlite3.connect(path)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
        spending = [row[1] for row in connection.execute("PRAGMA table_info(spending)")]
    assert columns[: 1 + len(CELL_COLUMNS)] == ["experiment", *CELL_COLUMNS]
    assert {"question_id", "question", "status", "answer", "error", "message", "notes", "scores"} <= set(columns)
    assert spending == ["experiment", "model", "purpose", "calls", "tokens", "money"]


def test_answers_scores_contexts_failures_and_runs(path):
    with ResultsReader.open(path) as reader:
        assert reader.name == "small"
        assert [cell.values["k"] for cell in reader.cells] == [2, 2, 3, 3, None]
        assert [cell.values.get("stitch", True) for cell in reader.cells] == [False] * 4 + [True]
        assert all(cell.identity for cell in reader.cells)
        answers = {(one.cell, one.question): one for one in reader.answers()}
        cells = {cell.key: cell for cell in reader.cells}
        assert answers.keys() == {(cell, question.key) for cell in cells for question in reader.questions}
        failed = {place for place, one in answers.items() if one.failed}
        (asked,) = [question.key for question in reader.questions if question.name == "1-2"]
        assert failed == {(cell, asked) for cell in cells}
        assert {answers[place].error for place in failed} == {"ConnectionRefusedError"}
        assert {place for place, one in answers.items() if "token_f1" in one.scores} == answers.keys() - failed
        contexts = [(cells[one.cell].values, one.context) for one in answers.values() if one.context is not None]
        assert len(contexts) == 4 * 5
        for values, context in contexts:
            assert len(context.kept) == values["k"]
            assert {one.document for one in context.kept} == {0}
            starts = [one.start for one in context.kept]
            ordered = starts if values["order"] == "source" else [one.rank for one in context.kept]
            assert ordered == sorted(ordered)
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
    with ResultsReader.open(path, small.name) as reader:
        spending = reader.spending()
    one, two = ((model.identity, "answers") for model in PreparedExperiment(small).models.values())
    assert set(spending) == {one, two}
    assert report.spent.calls == sum(spent.calls for spent in spending.values())
    assert report.spent.tokens == sum(spent.tokens or 0 for spent in spending.values())
    assert report.spent.money == pytest.approx(sum(spent.money for spent in spending.values()))
    assert spending[one].money < spending[two].money


def test_what_judges_are_asked_is_told_by_itself(tmp_path):
    path = tmp_path / "results.db"
    judged: dict[str, Any] = {"metrics": ["token_f1", "correct"], "judges": {"correct": {"model": "judge"}}}
    served = Judged()
    small = experiment(models=served.models, grid={"k": 3, "chunk_size": 32, "model": "reader"}, **judged)
    assert run(small, path).complete
    with ResultsReader.open(path) as reader:
        calls = {(model.rpartition(" ")[2], asked): spent.calls for (model, asked), spent in reader.spending().items()}
    assert sorted(asked for _, asked in calls) == ["answers", "correct"]
    assert sorted(calls.values()) == sorted(served.calls.values())


def test_a_reader_sees_one_state_of_the_file(theirs):
    with ResultsReader.open(theirs) as reader:
        before = [*reader.answers()]
        changed(theirs, "DELETE FROM answers")
        assert [*reader.answers()] == before
    with ResultsReader.open(theirs) as reader:
        assert [*reader.answers()] == []


def test_questions_of_another_experiment_play_no_part(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(RecordingModel(), grid={"k": [2, 3], "chunk_size": 32}), path)
    run(experiment(RecordingModel(), grid={"k": 3, "chunk_size": 32}, name="other"), path)
    keep = "(SELECT json_array(questions ->> 0, questions ->> 1))"
    changed(path, f"UPDATE experiments SET questions = {keep} WHERE name = 'other'")
    with ResultsReader.open(path, "other") as reader:
        assert len(reader.cells) == 1
        assert len(reader.questions) == 2
        assert {one.question for one in reader.answers()} == {question.key for question in reader.questions}
    for name, problem in {None: "several experiments", "third": "no experiment 'third'"}.items():
        with (
            pytest.raises(ExperimentError, match=f"has {problem}; specify one of: small, other"),
            ResultsReader.open(path, name),
        ):
            pass


def test_an_invalid_row_is_told_without_its_values(theirs):
    changed(theirs, "UPDATE runs SET versions = ?", f'{{"oprag": ["{LEAKED}"]}}')
    with (
        ResultsReader.open(theirs) as reader,
        pytest.raises(ResultsFileError, match=r"is corrupt \(invalid versions: ") as raised,
    ):
        reader.runs()
    assert LEAKED not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


# Files that are damaged, of others, or cannot be written


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "results.db"
    assert run(experiment(RecordingModel(), grid=GRID), path).complete
    flushed(path)
    return path


@pytest.fixture
def complete(whole, tmp_path):
    """A results file of a whole run."""
    return Path(shutil.copy(whole, tmp_path / "results.db"))


def check_refused(path, words):
    model = RecordingModel()
    with pytest.raises(ResultsFileError, match=words):
        run(experiment(model, grid=GRID), path)
    assert not model.calls


def test_a_deleted_answer_is_made_again_without_a_call(complete):
    before = rows(complete, SELECT)
    assert changed(complete, "DELETE FROM answers WHERE rowid > 5") > 0
    model = RecordingModel()
    assert run(experiment(model, grid=GRID), complete).complete
    assert not model.calls
    assert rows(complete, SELECT) == before


def test_what_was_read_wrong_is_told(tmp_path, complete):
    (tmp_path / "text.db").write_bytes(b"no database at all, but a text that is long enough to be looked at" * 50)
    check_refused(tmp_path / "text.db", "is not a results file, or is corrupt")
    # An empty file is one that begins.
    (tmp_path / "empty.db").touch()
    assert run(experiment(RecordingModel()), tmp_path / "empty.db").complete
    check_refused(tmp_path / "nowhere" / "results.db", "its folder does not exist")
    check_refused(tmp_path, "results file")
    with closing(sqlite3.connect(complete)) as connection:
        connection.execute("PRAGMA user_version = 99")
    check_refused(complete, "has format 99, expected 1; upgrade oprag")


def test_another_programs_database_is_left_alone(tmp_path):
    path = tmp_path / "mine.db"
    changed(path, "CREATE TABLE mine (a)")
    before = path.read_bytes()
    for attempt in (run, make_plan):
        with pytest.raises(ResultsFileError, match="is not a results file, but another SQLite database"):
            attempt(experiment(RecordingModel()), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("where", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_damage_is_told_or_mended(where, complete):
    """Bytes in the middle: either the file says so at the start, or what they hit is made again."""
    before, size = rows(complete, SELECT), flushed(complete)
    with complete.open("r+b") as opened:
        opened.seek(int(size * where))
        opened.write(b"\xa5" * 3_000)
    model = RecordingModel()
    try:
        report = run(experiment(model, grid=GRID), complete)
    except ResultsFileError as error:
        told = str(error)
    else:
        assert report.complete
        assert rows(complete, SELECT) == before
        return
    assert "corrupt" in told
    assert ".recover" in told
    assert not model.calls


def test_a_file_that_was_cut_off_is_told(complete):
    size = flushed(complete)
    with complete.open("r+b") as opened:
        opened.truncate(size * 2 // 3)
    check_refused(complete, "corrupt")


def test_a_file_that_is_deleted_meanwhile_is_told(tmp_path):
    path = tmp_path / "results.db"

    def deletes(text):
        for name in (path, path.with_name("results.db-wal"), path.with_name("results.db-shm")):
            name.unlink(missing_ok=True)
        return reply_to(text)

    with pytest.raises(ResultsFileError, match="was deleted or replaced during the run; start the run again"):
        run(experiment(deletes, max_concurrency=1), path)
    assert run(experiment(RecordingModel()), path).complete


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk_loses_nothing_that_was_written(tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fills(text, _):
        if len(model.calls) == 40:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        return False

    path, model, again = tmp_path / "results.db", RecordingModel(fails=fills), RecordingModel()
    try:
        with pytest.raises(ResultsFileError, match="cannot write the results file"):
            run(experiment(model, grid=GRID), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    ((kept,),) = rows(path, "SELECT count(*) FROM replies")
    assert kept >= 30
    assert run(experiment(again, grid=GRID), path).complete
    # Calls that were on their way when the disk was full may have come in since.
    assert 0 < len(again.calls) <= rows(path, "SELECT count(*) FROM replies")[0][0] - kept
    assert run(experiment(RecordingModel(), grid=GRID), tmp_path / "other.db").complete
    assert rows(path, SELECT) == rows(tmp_path / "other.db", SELECT)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    folder = Path("/proc") if os.geteuid() == 0 else tmp_path
    if folder is tmp_path:
        tmp_path.chmod(0o555)
    try:
        check_refused(folder / "results.db", "cannot write the results file")
    finally:
        tmp_path.chmod(0o755)
