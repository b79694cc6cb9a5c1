"""What errors say is on one line and has no key in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from oprag.compare.error_text import message_of, without_keys
from oprag.compare.running import run
from tests.compare.helpers import experiment

KEY = "made-up-value-of-a-key"


def test_one_line_as_long_as_wanted():
    assert message_of(ValueError("a\n  b\tc \ud800")) == "a b c \ufffd"
    assert message_of(ValueError("abcdef"), 3) == "abc"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "my_password", "CLIENT_SECRET"])
def test_what_the_environment_holds_as_a_secret_is_not_told(monkeypatch, name):
    monkeypatch.setenv(name, KEY)
    assert without_keys(f"401 for '{KEY}' in {KEY}") == "401 for '***' in ***"


def test_other_values_of_the_environment_are_told(monkeypatch):
    monkeypatch.setenv("SOME_MODEL", "a-model-of-mine")
    monkeypatch.setenv("SHORT_KEY", "timeout")
    assert without_keys("a-model-of-mine: timeout") == "a-model-of-mine: timeout"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Incorrect API key provided: sk-proj-0123456789abcdefXY.", "Incorrect API key provided: ***."),
        ("403 for url 'https://host/v1/models?key=0123456789abc&alt=json'", "?key=***&alt=json'"),
        ("cannot reach https://ada:swordfish@host:8080/v1", "https://***@host:8080/v1"),
        ("{'Authorization': 'Bearer 0123.4567-89ab'}", "'Bearer ***'"),
        ("headers {'x-api-key': '0123456789abcdef'}", "'x-api-key': '***'"),
    ],
)
def test_what_looks_like_a_key_is_not_told(said, told):
    shown = without_keys(said)
    assert told in shown
    assert not any(secret in shown for secret in ("0123456", "swordfish"))


@pytest.mark.parametrize(
    "said",
    [
        "maximum context length is 8192 tokens, got max_tokens: 9000",
        "KeyError: 'choices'",
        "https://host/v1/models?monkey=banana",
        "the token: unexpected end of input",
    ],
)
def test_other_errors_stay_as_they_are(said):
    assert without_keys(said) == said


def test_a_key_in_the_error_of_a_model_is_nowhere_in_the_file(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)

    def refused(prompt: str) -> str:
        raise PermissionError(f"invalid key {KEY}")

    path = tmp_path / "results.db"
    report = run(experiment(refused, give_up_after=2), path)
    assert report.failed == {"PermissionError": report.total - report.left}
    assert "invalid key ***" in report.outcome
    with closing(sqlite3.connect(path)) as connection, connection:
        dump = "\n".join(connection.iterdump())
    assert "invalid key ***" in dump
    assert KEY not in dump
