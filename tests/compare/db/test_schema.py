import sqlite3
from contextlib import closing

import pytest

from oprag._internal.files.database import Database
from oprag.compare.db.records import CELL_COLUMNS, RESULTS


@pytest.fixture
def connection(tmp_path):
    with Database(tmp_path / "results.db", RESULTS).writing():
        pass
    with closing(sqlite3.connect(tmp_path / "results.db")) as connection:
        yield connection


def test_views_have_the_columns_that_are_documented(connection):
    columns = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
    assert columns[: 1 + len(CELL_COLUMNS)] == ["experiment", *CELL_COLUMNS]
    assert {"question_id", "question", "status", "answer", "error", "message", "notes", "scores"} <= set(columns)
    spending = [row[1] for row in connection.execute("PRAGMA table_info(spending)")]
    assert spending == ["experiment", "model", "purpose", "calls", "tokens", "money"]
