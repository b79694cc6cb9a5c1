"""`oprag ask` with a real server behind a provider's protocol, with the packaged model, and when the server is gone."""

import json
import os
import re
import subprocess
import sys
from pydoc_data.topics import topics

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from tests.integration.model_server import LONGEST_REPLY, MortalServer

pytestmark = pytest.mark.integration

QUESTION = "What does the break statement do?"
TOPICS = ("break", "continue", "while", "for", "try", "pass")
SHORT = ("--k", "3", "--token-budget", "600", "--passage-tokens", "190", "--temperature", "0")
SUMMARY = re.compile(r"^── (\w+): (\d+) calls?, ([\d,]+) tokens in, ([\d,]+) out, [\d.]+ s$", re.MULTILINE)
CUT_SHORT = "Note: a reply was cut short at the model's limit of output tokens"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("books") / "reference.txt"
    path.write_text("\n\n".join(topics[name] for name in TOPICS), encoding="utf-8")
    return path


def served(address):
    return ("--model", "openai:smollm2", "--base-url", f"{address}/v1", *SHORT)


def started(book, *arguments):
    """The command in a process of its own, which writes as a terminal would get it."""
    # Servers of one's own want no key, so none may be needed.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    command = [sys.executable, "-c", "from oprag.cli import main; main()", "ask", str(book), QUESTION, *arguments]
    environment = kept | {"PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finished(process):
    stdout, stderr = (text.decode() for text in process.communicate(timeout=240))
    return process.returncode, stdout, stderr


def check_error(stderr):
    """One line that names the call and says what happened."""
    assert re.fullmatch(r"Error: the model call 'answer' failed: \w+Error: [^\n]+\n", stderr)


def test_the_figures_of_a_streamed_answer_are_the_servers(book, model_server):
    pieces = []
    with started(book, *served(model_server)) as process:
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            pieces.append(piece)
        stderr = process.stderr.read().decode()
    assert process.returncode == 0, stderr
    text = b"".join(pieces).decode()
    assert text.strip()
    assert text.endswith("\n")
    assert len(pieces) > 3

    # The same question again takes the same tokens.
    result = CliRunner().invoke(app, ["ask", str(book), QUESTION, *served(model_server), "--json"])
    (call,) = json.loads(result.stdout)["calls"]
    ((method, calls, read, written),) = SUMMARY.findall(stderr)
    assert (method, calls) == ("stuff", "1")
    assert int(read) == call["usage"]["input_tokens"]
    assert 1 < int(written) <= LONGEST_REPLY
    assert stderr.count(CUT_SHORT) == (int(written) == LONGEST_REPLY)


def test_the_server_dies_while_it_writes(book):
    server = MortalServer(endless=True)
    try:
        with started(book, *served(server.address)) as process:
            beginning = os.read(process.stdout.fileno(), 1 << 16)
            server.kill()
            code, rest, stderr = finished(process)
    finally:
        server.kill()
    assert beginning.strip()
    assert code == 1
    check_error(stderr)
    # The error begins a line of its own.
    assert (beginning.decode() + rest).endswith("\n")


def test_the_packaged_model_answers(book):
    with started(book, "--model", "local", "--k", "2", "--token-budget", "300") as process:
        code, stdout, stderr = finished(process)
    assert code == 0, stderr
    assert stdout.strip()
    # Nothing of the server that runs inside is shown.
    assert re.fullmatch(r"── stuff: 1 call, \d+ tokens in, \d+ out, \d+\.\d s\n(Note: [^\n]+\n)?", stderr)
