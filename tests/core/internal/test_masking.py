"""Messages: keys are masked, what a terminal obeys is marked, and foreign objects are named by their type."""

import random
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from oprag._internal import masking
from oprag._internal.masking import describe, error_text, listed, reason, shown, without_keys
from oprag._internal.text_table import safe
from oprag.chunk import PositionKind
from oprag.errors import OpragError

KEY = "made-up-value-of-a-key"


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "HF_TOKEN", "my_password", "CLIENT_SECRET", "MY_PAT", "SMTP_PASS", "DB_PWD", "API_KEY_2"),
        *("SECRET_KEY_BASE", "TOKEN_GITHUB", "API_KEY_OPENAI", "PASSWORD_DB"),
    ],
)
def test_what_the_environment_holds_as_a_secret_is_not_told(monkeypatch, name):
    monkeypatch.setenv(name, KEY)
    assert without_keys(f"401 for '{KEY}' in {KEY}") == "401 for '***' in ***"


def test_other_values_of_the_environment_are_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_MODEL", "a-model-of-mine")
    monkeypatch.setenv("SHORT_KEY", "timeout")
    monkeypatch.setenv("SORT_KEY", "score")
    monkeypatch.setenv("EMPTY_TOKEN", "0000000000000000")
    monkeypatch.setenv("CREDENTIALS", str(tmp_path))
    monkeypatch.setenv("PASSWORD_RESET_URL", "https://host/reset")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "a-model-of-mine")
    said = f"a-model-of-mine: timeout, score 0000000000000000 in {tmp_path} https://host/reset"
    assert without_keys(said) == said


def test_short_secrets_of_the_environment_are_masked_as_words_of_their_own(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "tulip9")
    assert without_keys("tulip9: no user with 'tulip9'; tulip99") == "***: no user with '***'; tulip99"


@pytest.mark.parametrize(("name", "value"), [("DB_PASSWORD", "postgres"), ("SORT_KEY", "colour"), ("TOKENS", "131072")])
def test_words_and_numbers_of_the_environment_are_told(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert without_keys(f"no such thing as '{value}'") == f"no such thing as '{value}'"


@pytest.mark.parametrize("end", [")", "].", "}),", ".", ""])
def test_what_ends_the_text_around_an_address_stays(end):
    masked = without_keys(f"(https://ada:s3cret@host/a?api_key=0123456789{end} and more")
    assert masked == f"(https://***@host/a?api_key=***{end} and more"


@pytest.mark.parametrize("value", ["postgres://ada:s3cr%3Et@db:5432/x", "https://s3cr%3Et@host/x"])
def test_logins_in_addresses_of_the_environment_are_secrets(monkeypatch, value):
    monkeypatch.setenv("DATABASE_URL", value)
    assert without_keys("no user s3cr>t or s3cr%3Et") == "no user *** or ***"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Incorrect API key provided: sk-proj-0123456789abcdefXY.", "Incorrect API key provided: ***."),
        ("403 for url 'https://host/v1/models?key=0123456789abc&alt=json'", "?key=***&alt=json'"),
        ("cannot reach https://ada:swordfish@host:8080/v1", "https://***@host:8080/v1"),
        ("cannot reach https://swordfish@host/v1", "https://***@host/v1"),
        ("no bucket at https://host/a.pdf?X-Amz-Signature=0123456&sig=swordfish", "a.pdf?X-Amz-Signature=***&sig=***"),
        ("{'Authorization': 'Bearer 0123.4567-89ab'}", "'Bearer ***'"),
        ("Authorization: Basic YWRhOnN3b3JkZmlzaA==, x", "Basic ***, x"),
        ("headers {'x-api-key': '0123456789abcdef'}", "'x-api-key': '***'"),
        ("Bearer 012345678:0123456", "Bearer ***"),
        ("ApiKey YWRhOnN3b3JkZmlzaA==, x", "ApiKey ***, x"),
        ("\\neyJ0123456789.0123456789.x", "\\n***"),
        ("(b'x-api-key', b'0123456')", "b'***'"),
        ("password: swordfish", "password: ***"),
        (
            '{"private_key": "-----BEGIN PRIVATE KEY-----\\n0123456\\n-----END PRIVATE KEY-----"}',
            '{"private_key": "***"}',
        ),
        ("AccountName=a;AccountKey=0123456==;x=y", "AccountName=a;AccountKey=***;x=y"),
        ("-----BEGIN RSA PRIVATE KEY-----\n0123456\n-----END RSA PRIVATE KEY-----.", "***."),
    ],
)
def test_what_looks_like_a_key_is_not_told(said, told):
    shown = without_keys(said)
    assert told in shown
    assert not any(secret in shown for secret in ("0123456", "swordfish"))
    assert without_keys(shown) == shown


@pytest.mark.parametrize(
    "said",
    [
        "maximum context length is 8192 tokens, got max_tokens: 9000",
        "KeyError: 'choices'",
        "https://host/v1/models?monkey=banana",
        "the token: unexpected end of input",
        "password must be a string, got None; api_key=None",
        "Basic research and the bearer of a letter; Bearer token required",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000, ISBN 978-3-16-148410-0",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==",
        "sk-learn-contrib-estimators, hf_hub_download, co_occurrence_matrix_of_words, npm_config_registry_url",
        "gpt-4o-mini-2024-07-18 python:3.11@sha256:93ab git+https://github.com/x/y@v1.0",
        "source_key='author' position_key=('page', 'n')",
        "write to ada@example.org or mailto:ada@example.org: the key is under the mat",
        "http://[::1]:8080/v1, C:\\Users\\ada, 12:30:45",
    ],
)
def test_other_text_stays_as_it_is(said):
    assert without_keys(said) == said


def test_a_secret_that_begins_as_another_one_does_is_masked_as_a_whole(monkeypatch):
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setenv("B_KEY", f"{KEY}-and-more")
    assert without_keys(f"{KEY}-and-more, {KEY}") == "***, ***"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a 'name'", "\"a 'name'\""),
        (3, "3"),
        (float("nan"), "nan"),
        (np.float64(0.5), "0.5"),
        (PositionKind.KEY, str(PositionKind.KEY.value)),
        (True, "True"),
        (None, "None"),
        (["a", 1, None], "['a', 1, None]"),
        (("a",), "('a',)"),
        (PurePosixPath("a/b"), "'a/b'"),
        ([object()], "list"),
        (list(range(11)), "list"),
        ({"a": 1}, "dict"),
        (b"bytes", "bytes"),
        pytest.param(10**5_000, "int", id="many digits"),
        (object(), "object"),
        (Path, "the class Path"),
        (without_keys, "function"),
        ("x" * 300, "'" + "x" * 198 + "…"),
        ("sk-" + "0123456789abcdefXY" * 2, "'***'"),
        ("/" + "folder/" * 40 + "a.pdf", "…" + ("folder/" * 40)[-193:] + "a.pdf'"),
        ("/" + "folder/" * 4_000 + "a.pdf", "'/" + ("folder/" * 40)[:197] + "…"),
        ("data:text/html;base64," + "PHA/" * 4_000, "'data:text/html;base64," + ("PHA/" * 45)[:176] + "…"),
    ],
)
def test_plain_values_are_described_by_themselves_and_others_by_their_type(value, text):
    assert describe(value) == text


def test_names_are_listed_as_they_are_unless_they_would_do_harm():
    assert listed(["page", "Seite 2", "a\nb", "\x1b[2J", "\u202e", 3]) == (
        "page, Seite 2, 'a\\nb', '\\x1b[2J', '\\u202e', 3"
    )
    assert listed([]) == "none"
    assert len(listed(["x" * 1_000])) == 201
    assert listed(["https://ada:swordfish@host/a", ""]) == "https://***@host/a, ''"


# Characters before a secret, so that each end of it falls on each end of what is read of a long value.
PADS = [*range(0, 2_300, 97), *range(1_994, 2_006, 3)]


@pytest.mark.parametrize(
    "secret",
    [
        "https://ada:{}@host/",
        "?api_key={}&x=",
        "sk-proj-{}/",
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        "{{'Authorization': 'Bearer {}'}}, ",
    ],
)
@pytest.mark.parametrize("length", [40, 3_000])
@pytest.mark.parametrize("unit", ["folder/", "some words "])
def test_part_of_a_secret_is_not_told_wherever_a_long_value_is_cut(secret, length, unit):
    key = "".join(random.Random(length).choices("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", k=length))
    hidden = "/" + secret.format(key)
    for pad in PADS:
        around = (unit * 400)[:pad]
        for value in (around + hidden + unit * 500, unit * 500 + hidden + around):
            for text in (shown(value, 80), shown(value, 80, repr, end=True), describe(value)):
                assert not any(text[start : start + 12] in key for start in range(max(0, len(text) - 11)))


@pytest.mark.parametrize("unit", ["folder/", "some words "])
def test_part_of_a_secret_of_the_environment_is_not_told_wherever_a_long_value_is_cut(monkeypatch, unit):
    monkeypatch.setenv("A_TOKEN", KEY)
    for pad in PADS:
        around = (unit * 400)[:pad]
        for value in (f"{around}/{KEY}{unit * 500}", f"{unit * 500}{KEY}/{around}"):
            text = shown(value, 200)
            assert not any(text[start : start + 6] in KEY for start in range(max(0, len(text) - 5)))


@pytest.mark.parametrize(
    "value", ["x" * 10**6, "/x" * 10**6, "some words " * 10**5, "https://ada:" + "x" * 10**6 + "@h/"]
)
def test_only_a_part_of_a_long_value_is_masked(monkeypatch, value):
    masked: list[int] = []

    def counting(text):
        masked.append(len(text))
        return text

    monkeypatch.setattr(masking, "without_keys", counting)
    for text in (
        shown(value, 80),
        shown(value, 80, repr, end=True),
        describe(value),
        listed([value] * 1_000),
        error_text(ValueError(value)),
    ):
        assert len(text) < 5_000
    assert len(str(OpragError(value))) <= 10_000
    assert sum(masked) < 50_000


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two\nlines\tand a tab",
        "no\u00a0break",
        "soft\u00adhyphen",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "wide\u3000space",
        "\U0001f468\u200d\U0001f469",
    ],
)
def test_ordinary_text_is_shown_as_it_is(text):
    assert safe(text) == text


@pytest.mark.parametrize("letter", ["\x1b", "\x07", "\x9b", "\x7f", "\r", "\u202e", "\u2066", "\ud83d"])
def test_what_a_terminal_would_obey_is_a_mark(letter):
    assert safe(f"a{letter}b") == "a\ufffdb"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", "'a.txt'"),
        ("Annual report of the city, part 2", "…of the city, part 2'"),
        (f"/data/{'folder/' * 500}manual.pdf", "…r/folder/manual.pdf'"),
        (f"/data/{'folder/' * 700}manual.pdf", "'/data/folder/folder"),
        (f"{'x' * 100} api_key=sk-abcdefghijklmnopqrstuvwxyz012345", f"…{'x' * 7} api_key=***'"),
        (f"https://user:{'secret' * 700}@a.example/b.pdf", "'https://***"),
        # What is read ends within the second secret, and the mask of the first one leaves room to show a part of it.
        (f"token={'x' * 1_005} sk-secret0123456789{'x' * 5_000}", "'token=***"),
    ],
)
def test_the_end_of_a_name_is_shown_without_secrets(name, expected):
    text = shown(name, 21, repr, end=True)
    assert text.startswith(expected)
    assert len(text) <= 21
    assert "secret" not in text


@pytest.mark.parametrize(
    ("error", "expected"), [(ValueError("no key\nsee https://x"), "no key"), (OSError(), "OSError")]
)
def test_the_reason_of_an_error_is_its_first_line_or_its_kind(error, expected):
    assert reason(error) == expected
