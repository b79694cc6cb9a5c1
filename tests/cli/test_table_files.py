"""`oprag compare` with files of its table."""

import csv
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from tests.compare.folders import argument, model, write_experiment

GRID = 'method = "context_only"\norder = ["source", "rank"]\nk = [2, 3]'


def compare(path, *arguments) -> Any:
    return CliRunner().invoke(app, ["compare", argument(path), *map(str, arguments)])


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_for_each_setting(tmp_path):
    path = write_experiment(tmp_path, GRID)
    assert compare(path, "--csv", tmp_path / "t.csv", "--answers").exit_code == 0
    result = compare(path, "--csv", tmp_path / "t.csv", "--json")
    assert result.exit_code == 0, result.output
    cells = json.loads(result.stdout)["settings"]
    assert f"CSV: {tmp_path / 't.csv'}" in result.stderr
    assert [(row["order"], int(row["k"]), float(row["evidence_coverage"])) for row in read_csv(tmp_path / "t.csv")] == [
        (cell["values"]["order"], cell["values"]["k"], cell["scores"]["evidence_coverage"]["mean"]) for cell in cells
    ]


def test_a_row_for_each_answer_in_both_files(tmp_path):
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    path = write_experiment(tmp_path, 'method = "stuff"\nk = 2', model(failing="did the comet"))
    result = compare(path, "--csv", tmp_path / "t.csv", "--parquet", tmp_path / "t.parquet", "--answers")
    assert result.exit_code == 1  # a question failed
    rows = read_csv(tmp_path / "t.csv")
    assert [row["status"] for row in rows] == ["answered", "answered", "failed", "answered"]
    assert parquet.read_table(tmp_path / "t.parquet").column("question_id").to_pylist() == [
        row["question_id"] for row in rows
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--answers"], "--answers requires an output file"),
        (["--csv", "none/t.csv"], "does not exist; create it first"),
        (["--csv", "harbour.toml"], "would be overwritten"),
        (["--parquet", "harbour.db"], "would be overwritten"),
        (["--csv", "data/questions.jsonl"], "would be overwritten"),
        (["--csv", "data/book0.md"], "would be overwritten"),
        (["--parquet", "data/../data/book0.md"], "would be overwritten"),
        (["--csv", "t", "--parquet", "t"], "must be different files"),
        (["--csv", "t.csv", "--plan"], "--plan runs nothing"),
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


def test_without_pyarrow_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    path = write_experiment(tmp_path, GRID)
    result = compare(path, "--parquet", tmp_path / "t.parquet")
    assert result.exit_code == 2
    assert "pip install 'oprag[analysis]'" in result.stderr
    assert not (tmp_path / "harbour.db").exists()
