"""Mutated results files, as somebody else may send one: every command reads them, or refuses them in one line."""

import json
import random
import resource
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from typing import Any

import pytest

from tests.cli.commands import run as oprag
from tests.compare.folders import in_python, model, write_experiment
from tests.security.fuzzing import cases, permissive

GRID = 'k = [2, 3]\norder = ["source", "rank"]\nneighbors = 1\nmethod = ["context_only", "self_route"]'
# As SQL.
VALUES = [
    *("NULL", "''", "'text'", "'[]'", "'{}'", "'null'", "'[null]'", "'[[]]'", "'[[0, 0, 0]]'", "'[1e999]'", "'[NaN]'"),
    *("-1", "0", "1", "3000000000", "9223372036854775807", "-9223372036854775808", "1.5", "9e999", "-9e999", "1e300"),
    *("x''", "x'ff00'", "zeroblob(3000000)", "CAST(x'ff' AS TEXT)", "CAST(x'eda080' AS TEXT)", "'a' || char(0)"),
    *("char(8238, 27, 10)", "hex(zeroblob(500000))", "replace(hex(zeroblob(50000)), '00', '[')", "'[\"\\ud800\"]'"),
]
PARTS: list[Any] = [
    None,
    True,
    -1,
    0,
    3 * 10**9,
    10**30,
    1.5,
    float("inf"),
    float("nan"),
    "",
    "x",
    "\ud800",
    "\x1b[2J",
    [],
    {},
]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n"
PLANTED = [
    "CREATE TRIGGER own AFTER INSERT ON runs BEGIN DELETE FROM answers; END",
    "CREATE INDEX own ON answers (length(zeroblob(90000000)))",
    f"CREATE VIEW own AS {ENDLESS}",
    "CREATE TABLE own (id, CHECK (length(zeroblob(90000000))))",
    "PRAGMA user_version = 2",
    "PRAGMA application_id = 7",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA encoding = 'UTF-16'",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two experiments that were run, one of them with failures and several methods."""
    path = tmp_path_factory.mktemp("fuzzed")
    experiment = write_experiment(path, GRID, model(failing="ferry"))
    assert oprag("compare", in_python(experiment), "--yes").exit_code == 1
    assert sweep(path, path / "sweep.db").exit_code == 0
    return path


def sweep(folder, results):
    words = ["--splitter", "words", "--chunk-size", "8", "--budgets", "10,20,40"]
    files = ["--results", results, "--write-profile", "none"]
    return oprag("sweep", folder / "data" / "questions.jsonl", *files, *words)


def mutate(path, chance):
    """Change a few values, rows, tables or bytes of a database."""
    with permissive(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            with suppress(sqlite3.Error, ValueError, RecursionError):
                _mutate_table(connection, chance.choice(tables), chance)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if chance.random() < 0.1:
            with suppress(sqlite3.Error):
                _mutate_schema(connection, chance.choice(tables), chance)
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if chance.random() < 0.1:
        content = bytearray(path.read_bytes())
        for _ in range(chance.choice([1, 10, 1_000])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])


def _mutate_table(connection, table, chance):
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    column = f'"{chance.choice(columns)}"'
    # The tables without row numbers have keys of several columns, so rows are told by a value.
    rows = connection.execute(f"SELECT {column} FROM {table} ORDER BY random() LIMIT 1").fetchone()
    where = f"WHERE {column} IS ?" if chance.random() < 0.7 else f"WHERE ? IS {column} OR 1"
    old = rows[0] if rows else None
    match chance.randrange(10):
        case 0:
            connection.execute(f"DELETE FROM {table} {where}", [old])
        case 1:
            connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ?", [old])
        case 2:
            other = chance.choice(columns)
            connection.execute(f'UPDATE OR REPLACE {table} SET {column} = "{other}" {where}', [old])
        case 3 | 4 | 5 if isinstance(old, str) and old[:1] in ("[", "{"):
            new = json.dumps(_mutated(json.loads(old), chance))
            connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ? {where}", [new, old])
        case _:
            connection.execute(f"UPDATE OR REPLACE {table} SET {column} = {chance.choice(VALUES)} {where}", [old])


def _mutated(value, chance):
    if isinstance(value, dict | list) and value and chance.random() < 0.8:
        place = chance.choice([*value] if isinstance(value, dict) else range(len(value)))
        value[place] = _mutated(value[place], chance)
        return value
    return chance.choice(PARTS)


def _mutate_schema(connection, table, chance):
    match chance.randrange(4):
        case 0:
            connection.execute(f"DROP TABLE {table}")
        case 1:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            connection.execute(f'ALTER TABLE {table} RENAME COLUMN "{chance.choice(columns)}" TO own')
        case 2:
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"CREATE VIEW {table} AS {ENDLESS}")
        case _:
            connection.execute(chance.choice(PLANTED))


def commands(folder, results, output):
    """Whatever reads a results file."""
    experiment = in_python(folder / "harbour.toml")
    yield lambda: oprag("report", results, "-o", output / "r.html")
    yield lambda: oprag("compare", experiment, "--results", results, "--yes", "--csv", output / "t.csv")
    yield lambda: oprag("compare", experiment, "--results", results, "--plan")
    yield lambda: sweep(folder, results)


def test_mutated_results_files_are_read_or_refused(folder, tmp_path):
    results = tmp_path / "theirs.db"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for seed in range(cases(20)):
        chance = random.Random(seed)
        for leftover in tmp_path.iterdir():
            leftover.unlink()
        name = chance.choice(["harbour.db", "harbour.db", "sweep.db"])
        shutil.copy(folder / name, results)
        mutate(results, chance)
        began = time.process_time()
        result = chance.choice([*commands(folder, results, tmp_path)])()
        assert isinstance(result.exception, SystemExit | None), (seed, result.exc_info)
        assert "Traceback" not in result.output, seed
        assert "\x1b" not in result.output, seed
        errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
        assert len(errors) == (result.exit_code == 2) or result.exit_code in (0, 1), (seed, result.stderr)
        assert time.process_time() - began < 20, seed
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000, seed  # kilobytes
        refused += bool(errors)
    # Some are still results files, so that more than the first look at them is tried.
    assert 0 < refused < cases(20)
