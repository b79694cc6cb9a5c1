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


def test_tables_are_strict_and_refer_to_each_other(connection):
    tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
    loose = {name for name, strict in tables if not strict}
    # A vector that is not one is made again.
    assert loose == {"sqlite_schema", "embedders", "vectors"}
    references = {
        (table, parent)
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for _, _, parent, *_ in connection.execute(f"PRAGMA foreign_key_list({table})")
    }
    assert references == {
        ("runs", "experiments"),
        ("replies", "runs"),
        ("failed_calls", "runs"),
        ("answers", "cells"),
        ("answers", "questions"),
        ("answers", "runs"),
    }


def test_a_file_names_its_format(connection):
    assert connection.execute("PRAGMA application_id").fetchone() == (RESULTS.application,)
    assert connection.execute("PRAGMA user_version").fetchone() == (RESULTS.version,)


def test_views_have_the_columns_that_are_documented(connection):
    columns = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
    assert columns[: 1 + len(CELL_COLUMNS)] == ["experiment", *CELL_COLUMNS]
    assert {"question_id", "question", "status", "answer", "error", "message", "notes", "scores"} <= set(columns)
    spending = [row[1] for row in connection.execute("PRAGMA table_info(spending)")]
    assert spending == ["experiment", "model", "purpose", "calls", "tokens", "money"]
