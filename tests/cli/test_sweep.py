"""`oprag sweep`, run as a user runs it."""

import json
import re

import pytest

from oprag.methods.profile import read_profile
from tests.cli import provider
from tests.cli.commands import run
from tests.cli.test_compare import check_refusal
from tests.compare.folders import write_data
from tests.compare.spending import write_ledgers

MODEL = "ollama:reader"
LEDGERS = ("book.txt", "--questions", "asked.jsonl")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    provider.install(monkeypatch)
    write_ledgers(tmp_path)
    return tmp_path


def sweep(*arguments):
    return run("sweep", *arguments, "--splitter", "words", "--chunk-size", 14)


def test_a_document_its_questions_and_a_model(folder):
    command = [*LEDGERS, "--budgets", "20,150,300,900", "--orders", "source,rank", "--model", MODEL]
    result = sweep(*command)
    assert result.exit_code == 0, result.output
    assert re.search(r"^Which setting to deploy\? .*source", result.stdout, re.MULTILINE)
    assert "Does source order help here? Yes." in result.stdout
    assert "How much context is worth its tokens?" in result.stdout
    assert "differs only in order" in result.stdout
    assert "Without --model" not in result.stderr
    profile = read_profile("oprag.toml")
    assert profile.context["order"] == "source"
    assert 150 <= profile.context["token_budget"] <= 300
    assert profile.method["method"] == "stuff"
    assert "splitter=words, chunk_size=14" in profile.about["retrieval"]
    assert result.stderr.endswith("Profile: oprag.toml\n")
    # The same command again asks nothing.
    again = sweep(*command)
    assert again.exit_code == 0
    assert again.stderr.endswith("Profile: oprag.toml\n")
    assert "0 model calls" in again.stderr
    assert again.stdout == result.stdout


def test_without_a_model_the_contexts_are_scored(folder):
    result = sweep(*LEDGERS, "--budgets", "20,60", "--orders", "rank", "--continuity", "0,0.5", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    values = [row["values"] for row in told["settings"]]
    assert {row["order"] for row in values} == {"rank"}
    assert sorted((row["token_budget"], row["continuity"]) for row in values) == [
        (20, 0),
        (20, 0.5),
        (60, 0),
        (60, 0.5),
    ]
    assert all(list(row["scores"]) == ["evidence_coverage"] for row in told["settings"])
    assert {row["chunk_size"] for row in values} == {14}
    assert "of which more text never contains less" in sweep(*LEDGERS, "--budgets", "20,60").stderr


def test_a_sweep_that_stopped_writes_no_profile(folder):
    result = sweep(
        "book.txt", "--questions", "asked.jsonl", "--budgets", "60,150", "--model", MODEL, "--limit-calls", 7, "--yes"
    )
    assert result.exit_code == 1, result.output
    assert not (folder / "oprag.toml").exists()
    assert "No profile was written, because some questions have no answer yet" in result.stderr
    assert "limit of 7 calls" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["book.txt", "--questions", "asked.jsonl", "--budgets", "1x"], ["budgets must be numbers of tokens", "'1x'"]),
        (["book.txt", "--questions", "asked.jsonl", "--continuity", "a"], ["continuity must be numbers such as 0,0.3"]),
        (["book.txt", "--questions", "asked.jsonl", "--metric", "bleu"], ["unknown metric 'bleu'"]),
        (["book.txt", "--questions", "none.jsonl"], ["none.jsonl"]),
        (["none"], ["no such file or folder: none"]),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_done(folder, arguments, words):
    check_refusal(sweep(*arguments), *words)
    assert not (folder / "sweep.db").exists()


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("", "it is a folder; name a file in it"),
        ("nowhere/oprag.toml", "the folder nowhere does not exist"),
        ("sweep.db", "sweep.db is an input of this command"),
        ("./book.txt", "book.txt is an input of this command"),
    ],
)
def test_no_profile_takes_the_place_of_something_else(folder, profile, words):
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    check_refusal(sweep(*LEDGERS, "--budgets", "60", "--write-profile", profile), words)
    assert {path: path.read_bytes() for path in folder.iterdir()} == kept


def test_a_folder_of_data_and_no_profile(folder):
    write_data(folder / "data")
    options = ("--sample", 2, "--format", "oprag", "--write-profile", "none", "--results", "other.db", "--json")
    result = sweep("data", "--budgets", "20", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["plan"]["questions"] == 2
    assert (folder / "other.db").exists()
    assert not {folder / "oprag.toml", folder / "sweep.db"} & {*folder.iterdir()}


# What a run may cost


def test_no_providers_model_is_called_without_a_word(folder, monkeypatch):
    groq = provider.install(monkeypatch).prompts
    swept = [*LEDGERS, "--budgets", "60", "--orders", "source", "--model", "groq:cranes"]
    check_refusal(sweep(*swept), "40 calls of groq:cranes with about", "may cost money, but have no price", "--yes")
    assert groq == []
    assert sweep(*swept, "--yes").exit_code == 0
    assert len(groq) == 40
    # Nothing is left to be asked.
    assert sweep(*swept).exit_code == 0
    assert len(groq) == 40
