"""Keys and passwords in the errors of clients are masked."""

import pytest

from oprag.masking import without_keys

KEY = "made-up-value-of-a-key"


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


def test_a_secret_that_begins_as_another_one_does_is_masked_as_a_whole(monkeypatch):
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setenv("B_KEY", f"{KEY}-and-more")
    assert without_keys(f"{KEY}-and-more, {KEY}") == "***, ***"
