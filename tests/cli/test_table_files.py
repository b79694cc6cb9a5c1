"""`oprag compare` with files of its table."""

import csv
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from tests.compare.folders import argument, write_experiment

GRID = 'method = "context_only"\norder = ["source", "rank"]\nk = [2, 3]'


def compare(path, *arguments) -> Any:
    return CliRunner().invoke(app, ["compare", argument(path), *map(str, arguments)])


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_for_each_setting(tmp_path):
    path = write_experiment(tmp_path, GRID)
    result = compare(path, "--csv", tmp_path / "t.csv", "--json")
    assert result.exit_code == 0, result.output
    cells = json.loads(result.stdout)["settings"]
    assert f"CSV: {tmp_path / 't.csv'}" in result.stderr
    assert [(row["order"], int(row["k"]), float(row["evidence_coverage"])) for row in read_csv(tmp_path / "t.csv")] == [
        (cell["values"]["order"], cell["values"]["k"], cell["scores"]["evidence_coverage"]["mean"]) for cell in cells
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--csv", "none/t.csv"], "does not exist; create it first"),
        (["--csv", "harbour.toml"], "would be overwritten"),
        (["--csv", "harbour.db"], "would be overwritten"),
        (["--csv", "data/questions.jsonl"], "would be overwritten"),
        (["--csv", "data/book0.md"], "would be overwritten"),
        (["--csv", "data/../data/book0.md"], "would be overwritten"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_run(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    path = write_experiment(tmp_path, GRID)
    before = {file: file.read_bytes() for file in (path, *(tmp_path / "data").iterdir())}
    result = compare(path.name, *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert {file: file.read_bytes() for file in before} == before
    assert not (tmp_path / "harbour.db").exists()
