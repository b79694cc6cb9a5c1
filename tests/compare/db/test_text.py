"""What errors say is on one line and has no key in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from oprag.compare.db.values import error_message
from oprag.compare.running.run import run
from tests.compare.helpers import experiment

KEY = "made-up-value-of-a-key"


def test_one_line_as_long_as_wanted():
    assert error_message(ValueError("a\n  b\tc \ud800")) == "a b c \ufffd"
    assert error_message(ValueError("abcdef"), 3) == "abc"


def test_a_key_in_the_error_of_a_model_is_nowhere_in_the_file(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)

    def refused(prompt: str) -> str:
        raise PermissionError(f"invalid key {KEY}")

    path = tmp_path / "results.db"
    report = run(experiment(refused, give_up_after=2), path)
    assert report.failed == {"PermissionError": report.total - report.remaining}
    assert "invalid key ***" in report.outcome
    with closing(sqlite3.connect(path)) as connection, connection:
        dump = "\n".join(connection.iterdump())
    assert "invalid key ***" in dump
    assert KEY not in dump
