"""Keys and logins: a client's error, an option or an address may hold one, and nothing that is stored or shown does."""

import base64
import inspect
import random
import re
import sqlite3
import time
import warnings
from contextlib import closing
from enum import EnumMeta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import oprag
from oprag import build_context
from oprag._internal.masking import without_keys
from oprag.chunk import Chunk
from oprag.cli.app import app
from oprag.compare import Results
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.running.run import run
from oprag.errors import OpragError, OpragWarning
from tests.compare.helpers import experiment

# Made up, and in the form of real ones.
RANDOM = "0123456789abcdefABCDEF0123456789abcd"
LOGIN = base64.b64encode(b"ada:swordfish").decode()
BESIDE = [
    f"Authorization: Basic {LOGIN}",
    "cannot reach https://ada:swordfish@host:8080/v1",
    "cannot reach https:\\/\\/ada:swordfish@host\\/v1 and https%3A%2F%2Fada%3Aswordfish%40host",
    "{'x-api-key': 'swordfish'}",
]
BARE = [
    *(
        f"{start}{RANDOM}"
        for start in ("sk-proj-", "sk-ant-api03-", "hf_", "gsk_", "AIzaSy", "jina_", "tvly-", "ya29.")
    ),
    *(
        f"{start}{RANDOM}"
        for start in ("gho_", "ghp_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "pplx-", "npm_")
    ),
    "AKIA" + "IOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
]
MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
SECRETS = [*BARE, LOGIN, "swordfish", "tulip-9"]


def holds_secrets(text):
    return [secret for secret in SECRETS if secret in text]


class Client:
    """A client of somebody else, whose repr holds its key; in no form that a pattern could know."""

    def __repr__(self):
        return "Client(swordfish)"


def test_a_failed_call_leaves_no_secret_in_the_results_or_what_is_made_of_them(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_PAT", "tulip-9")

    def failing(prompt):
        raise PermissionError(" ".join([*BESIDE, *BARE, *(f"\x1b[31m{one}\x1b[0m" for one in BARE), "tulip-9"]))

    path = tmp_path / "results.db"
    run(experiment(failing), path)
    report = CliRunner().invoke(app, ["report", str(path)])
    assert report.exit_code == 0, report.output
    with ResultsReader.open(path, "small") as reader:
        (failure,) = reader.failures()
    assert "***" in failure.message
    rows = [*Results.open(path, "small").answers()]
    stored = [file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()]
    assert len(stored) > 1
    assert not holds_secrets("".join([report.output, failure.message, str(rows), *stored]))


def test_secrets_in_the_results_of_others_are_masked(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(lambda prompt: {}[prompt]), path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE answers SET message = ?", [" ".join([*BESIDE, *BARE])])
    report = CliRunner().invoke(app, ["report", str(path)])
    rows = [*Results.open(path, "small").answers()]
    with ResultsReader.open(path, "small") as reader:
        failures = reader.failures()
    assert "***" in failures[0].message
    assert not holds_secrets(f"{report.output}{rows}{failures}{path.with_suffix('.html').read_text('utf-8')}")


@pytest.mark.parametrize("text", [*BESIDE, *BARE])
def test_errors_and_warnings_hold_no_secret(text):
    assert not holds_secrets(str(OpragError(f"it failed: {text}")))
    assert not holds_secrets(str(OpragWarning(f"it failed: {text}")))


def test_a_report_of_a_context_shows_no_login_of_an_address():
    context = build_context([Chunk("text", 0, source="https://ada:swordfish@host/page", metadata={"page": 1})])
    assert "https://***@host/page" in context.explain()
    assert "swordfish" not in context.explain()


class UnreadableError(ConnectionError):
    """An error that cannot say what it is about."""

    def __str__(self):
        raise RuntimeError("swordfish")


@pytest.mark.parametrize(
    "error", [UnreadableError(), ConnectionError("page " * 1_000_000), ConnectionError("x " * 1_990 + BARE[0])]
)
def test_an_error_that_is_huge_or_says_nothing_is_a_failed_call_like_another(tmp_path, error):
    def failing(prompt):
        raise error

    path = tmp_path / "results.db"
    report = run(experiment(failing), path)
    assert [*report.failed] == [type(error).__name__]
    assert len(path.read_bytes()) < 1_000_000
    assert BARE[0][:12] not in path.read_bytes().decode("latin-1")


@pytest.mark.parametrize(
    "module",
    ["oprag", "oprag.langchain", "oprag.llama_index", "oprag.compare", "oprag.methods", "oprag.methods.profile"],
)
def test_an_object_that_is_not_ours_is_named_by_its_type(module):
    public = pytest.importorskip(module, exc_type=ImportError)
    messages = [message for name in public.__all__ for message in refusals(getattr(public, name))]
    assert messages
    assert not [message for message in messages if "swordfish" in message]


def refusals(made):
    """What the errors say when each parameter in turn is a client, and those that must be given are clients, too."""
    # An enumeration refuses values in words of Python's own, and a typed dictionary takes everything.
    if not callable(made) or isinstance(made, EnumMeta) or (isinstance(made, type) and issubclass(made, dict)):
        return
    parameters = [one for one in inspect.signature(made).parameters.values() if one.kind not in MANY]
    for chosen in parameters:
        for foreign in (Client(), [Client()], {"key": Client()}):
            given = [one for one in parameters if one is chosen or one.default is one.empty]
            positional = [foreign for one in given if one.kind == one.POSITIONAL_ONLY]
            named = {one.name: foreign for one in given if one.kind != one.POSITIONAL_ONLY}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made(*positional, **named)
            except Exception as error:  # noqa: BLE001 - whatever refuses it
                yield str(error)


def test_messages_describe_what_they_got():
    written = [
        path
        for path in Path(oprag.__file__).parent.rglob("*.py")
        if re.search(r"got \{[^{}]+!r\}", path.read_text("utf-8"))
    ]
    assert not written, "write got {describe(value)}: the repr of a foreign object may hold its key"


def test_hostile_texts_are_masked_in_time_that_grows_with_their_length():
    pieces = ["sk-", "eyJabcdef", ".", "://", "@", ":", "ada", "password", "='", "=", '"', " ", "Basic ", "-----BEGIN "]
    pieces += ["PRIVATE KEY-----", "Authorization", "?key=", "%3A%2F%2F", "cookie: ", "host.example.org", "A", "\\"]
    begun = time.process_time()
    for seed in range(12):
        chance = random.Random(seed)
        piece = "".join(chance.choices(pieces, k=chance.randint(1, 4)))
        without_keys(piece * (100_000 // len(piece)))
    # Less than a second; a pattern that starts again at each character would take minutes.
    assert time.process_time() - begun < 30
