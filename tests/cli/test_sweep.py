"""`oprag sweep`, run as a user runs it."""

import json

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.profile import read_profile
from tests.cli.test_compare import check_refusal
from tests.compare.folders import write_data
from tests.compare.ledgers import write_ledgers

MODEL = "tests.compare.ledgers:reader"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_ledgers(tmp_path)
    return tmp_path


def sweep(*arguments):
    words = ["--splitter", "words", "--chunk-size", "14"]
    return CliRunner().invoke(app, ["sweep", *map(str, arguments), *words])


def test_a_document_its_questions_and_a_model(folder):
    result = sweep(
        "book.txt", "--questions", "asked.jsonl", "--budgets", "20,60,150,300,900", "--model", MODEL, "--seeds", 1
    )
    assert result.exit_code == 0, result.output
    assert "source: sweet spot at token_budget=" in result.stdout
    assert "chosen: order=source, token_budget=" in result.stdout
    assert "token_f1: order against source" in result.stdout
    assert "only a sweep with a model can say" not in result.stdout
    profile = read_profile("oprag.toml")
    assert profile.assembly["order"] == "source"
    assert 150 <= profile.assembly["token_budget"] <= 300
    assert "Profile: oprag.toml" in result.stderr
    # The same command again asks nothing.
    again = sweep(
        "book.txt", "--questions", "asked.jsonl", "--budgets", "20,60,150,300,900", "--model", MODEL, "--seeds", 1
    )
    assert again.exit_code == 0
    assert "0 calls of models" in again.stderr or "no calls of models" in again.stderr
    assert again.stdout == result.stdout


def test_without_a_model_the_contexts_are_scored(folder):
    result = sweep("book.txt", "--questions", "asked.jsonl", "--budgets", "20,60", "--orders", "rank", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["metric"] == "evidence_coverage"
    assert [row["values"]["token_budget"] for row in told["cells"]] == [20, 60]
    assert {row["values"]["order"] for row in told["cells"]} == {"rank"}
    assert told["curves"][0]["conclusion"].startswith("sweet spot at token_budget=60")
    assert told["profile"]["assembly"]["order"] == "rank"
    plain = sweep("book.txt", "--questions", "asked.jsonl", "--budgets", "20,60", "--orders", "rank")
    assert "only a sweep with a model can say" in plain.stdout


def test_a_folder_of_data_and_no_profile(folder):
    write_data(folder / "data")
    result = sweep("data", "--budgets", "20", "--sample", 2, "--profile", "none", "--results", "other.db")
    assert result.exit_code == 0, result.output
    assert not (folder / "oprag.toml").exists()
    assert (folder / "other.db").exists()
    assert not (folder / "sweep.db").exists()
    assert "nothing to compare" in result.stdout


def test_a_sweep_that_stopped_writes_no_profile(folder):
    result = sweep(
        "book.txt", "--questions", "asked.jsonl", "--budgets", "60,150", "--model", MODEL, "--limit-calls", 7, "--yes"
    )
    assert result.exit_code == 1, result.output
    assert not (folder / "oprag.toml").exists()
    assert "No profile is written before every question has an answer" in result.stderr
    assert "limit of 7 calls" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["book.txt", "--questions", "asked.jsonl", "--budgets", "1x"], ["a budget must be", "'1x'"], 2),
        (["book.txt", "--questions", "asked.jsonl", "--orders", "best"], ["order", "'best'"], 1),
        (["book.txt", "--questions", "asked.jsonl", "--metric", "bleu"], ["no metric 'bleu'"], 2),
        (["book.txt", "--questions", "none.jsonl"], ["none.jsonl"], 1),
        (["none.txt", "--questions", "asked.jsonl"], ["none.txt"], 1),
        (["none"], ["no file or folder none"], 1),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_done(folder, arguments, words, code):
    check_refusal(sweep(*arguments), *words, code=code)
    assert not (folder / "sweep.db").exists()
