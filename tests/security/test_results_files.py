"""Results files of somebody else: no value in them takes memory or time of its own choosing, or runs statements."""

import shutil
import sqlite3
import tracemalloc
from contextlib import closing

import pytest

from oprag.compare import Results
from oprag.compare.db.results_file import ResultsFile
from oprag.errors import ResultsFileError
from tests.cli.commands import run as oprag
from tests.compare.folders import write_experiment
from tests.security.fuzzing import permissive

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = write_experiment(tmp_path_factory.mktemp("ran"), 'method = "context_only"\nk = [2, 3]')
    assert oprag("compare", path).exit_code == 0
    return path.with_suffix(".db")


@pytest.fixture
def theirs(original, tmp_path):
    shutil.copy(original, tmp_path / "theirs.db")
    return tmp_path / "theirs.db"


def change(path, statement, *values):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def test_a_question_of_a_data_set_without_settings_is_left_out(theirs):
    change(theirs, "UPDATE questions SET data = 'another' WHERE rowid = 1")
    assert oprag("report", theirs).exit_code == 0


def test_one_number_takes_no_memory(theirs):
    change(theirs, "UPDATE answers SET context = json_set(context, '$[0][0][2]', 300000000000)")
    change(theirs, "UPDATE questions SET documents = json('{\"book0.md\": 300000000000}')")
    oprag("report", theirs)  # what is loaded once
    tracemalloc.start()
    result = oprag("report", theirs)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.exit_code == 0
    assert most < 50_000_000


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE answers SET calls = 'two'", "answers.calls"),
        ("UPDATE answers SET estimated = 2", "CHECK constraint failed in answers"),
        ("UPDATE answers SET run = NULL", "answers.run"),
        ("UPDATE questions SET question = x'00'", "questions.question"),
    ],
)
def test_a_value_that_the_tables_do_not_permit_is_told_in_one_line(theirs, statement, words):
    with permissive(theirs) as connection:
        connection.execute(statement)
    check_refused(theirs, words)
    with pytest.raises(ResultsFileError):
        Results.open(theirs)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE answers SET context = json_set(context, '$[0][0][2]', 9223372036854775807)", "invalid context: "),
        ("UPDATE answers SET context = json_set(context, '$[0][0][0]', -1)", "invalid context: "),
        ("UPDATE answers SET scores = '{\"token_f1\": 1e999}'", "invalid scores: "),
        ("UPDATE answers SET context = '[[[0, 0, 9, 0, NaN]], {}]'", "invalid context: "),
        ("UPDATE answers SET context = '[[[0, 0]], {}]'", "invalid context: "),
        ("UPDATE answers SET context = '[[[0, 0, 9, 0, 0] [1, 1, 9, 0, 0]], {}]'", "invalid context: "),
        ("UPDATE answers SET context = '[[], {\"k\": 1e999}]'", "invalid context: "),
        ("DELETE FROM questions", "(the QuestionRecord "),
        ("UPDATE cells SET \"values\" = json_set(\"values\", '$.k', json('{}'))", "invalid values: "),
        ("UPDATE questions SET about = replace(hex(zeroblob(5000)), '00', '[')", "invalid about: "),
        ("UPDATE questions SET about = '[]'", "invalid about: "),
        ("UPDATE questions SET documents = '[\"\\ud800\"]'", "invalid documents: "),
        ("UPDATE questions SET answers = '[' || hex(zeroblob(9000000)) || ']'", "string or blob too big"),
        ("UPDATE questions SET choices = CAST(x'ff' AS TEXT)", "UTF-8"),
        ('UPDATE experiments SET described = \'{"grid": [{"k": 1}]}\'', "invalid described: "),
        ("UPDATE experiments SET described = '{\"grid\": []}'", "invalid described: "),
        ("UPDATE cells SET \"values\" = json_set(\"values\", '$.neighbors', json('{}'))", "invalid values"),
        ("UPDATE answers SET calls = -1", "invalid calls: "),
    ],
)
def test_a_value_that_cannot_be_is_told_in_one_line(theirs, statement, words):
    change(theirs, statement)
    check_refused(theirs, words)


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE answers"],
        ["ALTER TABLE answers RENAME COLUMN scores TO score"],
        ["CREATE TRIGGER own AFTER INSERT ON runs BEGIN DELETE FROM answers; END"],
        ["CREATE INDEX own ON answers (length(zeroblob(90000000)))"],
        ["DROP TABLE vectors", f"CREATE VIEW vectors AS {ENDLESS}"],
    ],
)
def test_other_tables_are_told_in_one_line(theirs, statements):
    for statement in statements:
        change(theirs, statement)
    check_refused(theirs, "its tables are not those that oprag creates")


def check_refused(path, words):
    result = oprag("report", path)
    assert result.exit_code == 1
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("planted", [b"CREATE\xff", b'CREATE "', b"\xc3REATE"])
def test_damaged_definitions_are_told_in_one_line(theirs, planted):
    change(theirs, "PRAGMA wal_checkpoint(TRUNCATE)")
    theirs.write_bytes(theirs.read_bytes().replace(b"CREATE TABLE answers"[: len(planted)], planted, 1))
    result = oprag("report", theirs)
    assert result.exit_code == 1
    assert "is corrupt (" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    for use in (Results.open, lambda path: ResultsFile(path).spent("small")):
        with pytest.raises(ResultsFileError) as raised:
            use(theirs)
        assert "\n" not in str(raised.value)


def test_pages_that_are_shared_are_not_read_again_and_again(theirs):
    with closing(sqlite3.connect(theirs, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        rows = ((None, 1, row) for row in range(600))
        connection.executemany("INSERT INTO failed_calls VALUES (?, 'k', 'm', 's', 'e', 'm', ?, ?, 'now')", rows)
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'failed_calls'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(theirs.read_bytes())
    start = (root - 1) * size
    assert content[start] == 5  # a page that refers to others
    cells = [int.from_bytes(content[at : at + 2]) for at in range(start + 12, start + 18, 2)]
    # The second child becomes the first one once more.
    content[start + cells[1] : start + cells[1] + 4] = content[start + cells[0] : start + cells[0] + 4]
    theirs.write_bytes(content)
    assert "is corrupt (" in oprag("report", theirs).stderr


def test_what_users_add_to_their_own_files_stays(theirs):
    change(theirs, f"CREATE VIEW mine AS {ENDLESS}")
    change(theirs, "ANALYZE")
    change(theirs, "UPDATE answers SET context = json(context)")
    change(theirs, "UPDATE answers SET scores = '{}' WHERE rowid = 1")
    change(theirs, "VACUUM")
    assert oprag("report", theirs).exit_code == 0


def test_constraints_of_other_tables_are_not_computed(theirs):
    change(theirs, "CREATE TABLE own (id, CHECK (id > 1))")
    with closing(sqlite3.connect(theirs, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("INSERT INTO own VALUES (1)")
    assert oprag("report", theirs).exit_code == 0
