import json
import os
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oprag.compare.db.records import (
    AnswerRecord,
    CellRecord,
    ChunkRecord,
    FailedCall,
    IndexRecord,
    QuestionRecord,
    Reply,
    Spent,
    VectorRecord,
)
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.plan import make_plan
from oprag.compare.running.run import run
from oprag.errors import ResultsFileError
from oprag.methods.answer import Usage
from tests.compare.answering import LEAKED
from tests.compare.helpers import METHODS, RecordingModel, experiment, keepers, reply_to, rows

GRID = {"k": 4, "chunk_size": 32, "method": METHODS}
SELECT = "SELECT question_id, method, status, answer, calls, input_tokens, scores FROM results ORDER BY 1, 2"


USAGE = Usage(7, 3, 2)


def reply(key="a" * 32, text="yes", usage=USAGE, **others):
    given = {"model": "m", "step": "answer", "finish_reason": "stop", "seconds": 0.5, "money": 0.25, **others}
    return Reply(key=key, text=text, usage=usage, **given)


@pytest.fixture
def file(tmp_path):
    file = ResultsFile(tmp_path / "results.db")
    file.begin("small", {}, [], [], {})
    yield file
    file.close()


def test_replies_come_back_as_they_were(file):
    given = reply(text="with\0zero, ünïcode 🜚 and\nlines", usage=Usage(7, 3, 2, estimated=True))
    assert file.put([given]) == [given]
    assert ResultsFile(file.path).get(Reply, [given.key, "b" * 32]) == [given, None]
    assert file.get(Reply, ["b" * 32]) == [None]
    assert file.spent("small") == Spent(1, 10, 0.25)
    assert file.spent("another").calls == 0


def test_the_first_of_two_replies_is_kept(file):
    file.put([reply(text="first")])
    again = [reply(key="b" * 32), reply(text="second")]
    assert file.put(again) == [again[0], reply(text="first")]
    assert file.get(Reply, ["a" * 32, "b" * 32]) == [reply(text="first"), again[0]]
    assert file.put([]) == []


def test_failed_calls_count_and_are_kept_each(file):
    for _ in range(2):
        file.put([FailedCall("a" * 32, "m", "answer", "TimeoutError", "too slow", 1.5)])
    assert file.spent("small").calls == 2
    assert (
        rows(file.path, "SELECT error, message, seconds FROM failed_calls") == [("TimeoutError", "too slow", 1.5)] * 2
    )


def vector_of(*values, key=b"1"):
    return VectorRecord("words", key, np.array(values, dtype=np.float32))


def test_indexes_and_vectors_come_back(file):
    pieces = [ChunkRecord("a", None, 0, 10, 3), ChunkRecord("b", 2, 5, 9, 1)]
    index = IndexRecord("k1", pieces)
    file.put([index])
    assert file.get(IndexRecord, ["k1", "k2"]) == [index, None]
    file.put([vector_of(number, -0.1, key=b"%d" % number) for number in range(3)])
    one, none, another = file.get(VectorRecord, [("words", b"2"), ("words", b"4"), ("words", b"0")])
    assert none is None
    assert file.get(VectorRecord, [("others", b"0")]) == [None]
    assert one.key == ("words", b"2")
    assert one.vector.tolist() == vector_of(2, -0.1).vector.tolist()
    assert another.vector[0] == 0
    with pytest.raises(ResultsFileError, match="dimension 2 for the embedder 'words', got dimension 3"):
        file.put([vector_of(1, 2, 3, key=b"5")])


@pytest.mark.parametrize("bad", ["x'00'", "x'0000c07f0000803f'"], ids=["another-length", "nan"])
def test_a_bad_vector_is_made_again(file, bad):
    file.put([vector_of(1, 2), vector_of(3, 4, key=b"2")])
    with closing(sqlite3.connect(file.path)) as connection, connection:
        connection.execute(f"UPDATE vectors SET vector = {bad} WHERE hash = ?", [b"1"])
    missing, other = file.get(VectorRecord, [("words", b"1"), ("words", b"2")])
    assert missing is None
    assert other.vector.tolist() == [3, 4]
    file.put([vector_of(1, 2)])
    assert file.get(VectorRecord, [("words", b"1")])[0].vector.tolist() == [1, 2]


@pytest.mark.parametrize("kind", ["failed call", "outcome", "failed answer"])
def test_secrets_in_messages_are_masked_when_they_are_written(file, kind):
    said = f"no access with {LEAKED}"
    if kind == "failed call":
        file.put([FailedCall("a" * 32, "m", "answer", "TimeoutError", said, 1.5)])
    elif kind == "outcome":
        file.end(said)
    else:
        cell, question = "c" * 32, "d" * 32
        record = CellRecord(cell, {}, {})
        asked = QuestionRecord(question, "data", "1", "What?", [], [], None, [], [], {})
        file.begin("small", {}, [record], [asked], {})
        file.put_answers([AnswerRecord(cell=cell, question=question, error="E", message=said, notes=[said, '"\ud800'])])
        ((notes,),) = rows(file.path, "SELECT notes FROM answers")
        assert json.loads(notes)[1] == '"\ufffd'
    file.close()
    assert LEAKED.encode() not in file.path.read_bytes()


def test_nothing_is_written_before_a_run(tmp_path):
    file = ResultsFile(tmp_path / "results.db")
    for kind, key in {Reply: "a", IndexRecord: "a", VectorRecord: ("words", b"1")}.items():
        assert file.get(kind, [key]) == [None]
    assert file.done("small") == (set(), {})
    assert file.spent("small") == Spent()
    assert not list(tmp_path.iterdir())


def complete(path):
    """A results file of a whole run."""
    assert run(experiment(RecordingModel(), grid=GRID), path).complete
    return rows(path, SELECT)


def test_a_deleted_answer_is_made_again_without_a_call(tmp_path):
    path = tmp_path / "results.db"
    before = complete(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        assert connection.execute("DELETE FROM answers WHERE rowid > 5").rowcount > 0
    model = RecordingModel()
    assert run(experiment(model, grid=GRID), path).complete
    assert not model.calls
    assert rows(path, SELECT) == before


def test_what_was_read_wrong_is_told(tmp_path):
    for name, content in {
        "text.db": b"no database at all, but a text that is long enough to be looked at" * 50,
        "empty.db": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ResultsFileError, match="is not a results file, or is corrupt"):
        run(experiment(RecordingModel()), tmp_path / "text.db")
    # An empty file is one that begins.
    assert run(experiment(RecordingModel()), tmp_path / "empty.db").complete


def test_another_programs_database_is_left_alone(tmp_path):
    path = tmp_path / "mine.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mine (a)")
    before = path.read_bytes()
    for attempt in (run, make_plan):
        with pytest.raises(ResultsFileError, match="is not a results file, but another SQLite database"):
            attempt(experiment(RecordingModel()), path)
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_left_alone(tmp_path):
    path = tmp_path / "results.db"
    complete(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    model = RecordingModel()
    with pytest.raises(ResultsFileError, match="has format 99, expected 1; upgrade oprag"):
        run(experiment(model, grid=GRID), path)
    assert not model.calls


@pytest.mark.parametrize("where", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_damage_is_told_or_mended(where, tmp_path):
    """Bytes in the middle: either the file says so at the start, or what they hit is made again."""
    path = tmp_path / "results.db"
    before = complete(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as opened:
        opened.seek(int(size * where))
        opened.write(b"\xa5" * 3_000)
    model = RecordingModel()
    try:
        report = run(experiment(model, grid=GRID), path)
    except ResultsFileError as error:
        told = str(error)
    else:
        assert report.complete
        assert rows(path, SELECT) == before
        return
    assert "corrupt" in told
    assert ".recover" in told
    assert not model.calls


def test_a_file_that_was_cut_off_is_told(tmp_path):
    path = tmp_path / "results.db"
    complete(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as opened:
        opened.truncate(path.stat().st_size * 2 // 3)
    model = RecordingModel()
    with pytest.raises(ResultsFileError, match="corrupt"):
        run(experiment(model, grid=GRID), path)
    assert not model.calls


def test_a_file_that_is_deleted_meanwhile_is_told(tmp_path):
    path = tmp_path / "results.db"

    def deletes(text):
        for name in (path, path.with_name("results.db-wal"), path.with_name("results.db-shm")):
            name.unlink(missing_ok=True)
        return reply_to(text)

    with pytest.raises(ResultsFileError, match="was deleted or replaced during the run; start the run again"):
        run(experiment(deletes, max_concurrency=1), path)
    assert run(experiment(RecordingModel()), path).complete


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ResultsFileError, match="its folder does not exist"):
        run(experiment(RecordingModel()), tmp_path / "nowhere" / "results.db")
    with pytest.raises(ResultsFileError, match="results file"):
        run(experiment(RecordingModel()), tmp_path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    folder = Path("/proc") if os.geteuid() == 0 else tmp_path
    if folder is tmp_path:
        tmp_path.chmod(0o555)
    model = RecordingModel()
    try:
        with pytest.raises(ResultsFileError, match="cannot write the results file"):
            run(experiment(model), folder / "results.db")
    finally:
        tmp_path.chmod(0o755)
    assert not model.calls


class Full(RecordingModel):
    """Fills the disk after some calls."""

    def __init__(self, file: Path, after: int) -> None:
        super().__init__()
        self._file = file
        self._after = after
        self._filling = threading.Lock()
        self.filled = threading.Event()

    def __call__(self, text):
        with self._filling:
            if len(self.calls) >= self._after and not self.filled.is_set():
                fill(self._file)
                self.filled.set()
        return super().__call__(text)


def fill(path: Path) -> None:
    """Write until there is no room."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"\0" * 4_096):
            pass


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own with little room; needs to be root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may make a disk")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("no disk can be made here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_loses_nothing_that_was_written(small_disk):
    path = small_disk / "results.db"
    data = keepers(documents=4, questions=6)
    model = Full(small_disk / "rubbish", after=40)
    options: dict[str, Any] = {"grid": GRID, "data": data, "metrics": ["token_f1"]}
    with pytest.raises(ResultsFileError, match=r"results file.*full"):
        run(experiment(model, **options), path)
    assert model.filled.wait(30)
    (small_disk / "rubbish").unlink()
    kept = {key for (key,) in rows(path, "SELECT key FROM replies")}
    assert len(kept) >= 30
    again = RecordingModel()
    report = run(experiment(again, **options), path)
    assert report.complete
    # Calls that were on their way when the disk was full may have come in since.
    assert 0 < len(again.calls) <= rows(path, "SELECT count(*) FROM replies")[0][0] - len(kept)
