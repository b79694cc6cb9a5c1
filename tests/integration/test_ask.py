"""`oprag ask` with a real server behind a provider's protocol, and with the model that comes in a package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pydoc_data.topics import topics

import pytest

pytestmark = pytest.mark.integration

QUESTION = "What does the break statement do?"
SMALL = ("--k", "2", "--token-budget", "300")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("ask") / "reference.txt"
    path.write_text("\n\n".join(topics[name] for name in ("break", "continue", "while", "for")), encoding="utf-8")
    return path


@pytest.fixture
def served(model_server):
    return ("--llm", "openai:smollm2", "--base-url", f"{model_server}/v1", "--temperature", "0")


def started(*arguments, **kwargs):
    # Servers of one's own want no key, so none may be needed.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    command = [sys.executable, "-c", "from oprag.cli import main; main()", "ask", *map(str, arguments)]
    return subprocess.Popen(
        command, env=kept | {"PYTHONIOENCODING": "utf-8"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs
    )


def ask(*arguments):
    with started(*arguments) as process:
        stdout, stderr = process.communicate(timeout=300)
    assert "Traceback" not in stderr.decode()
    return process.returncode, stdout.decode(), stderr.decode()


def answered(*arguments):
    code, stdout, stderr = ask(*arguments)
    assert code == 0, stderr
    return stdout, stderr


def test_a_server_answers_in_pieces(reference, served):
    with started(reference, QUESTION, *SMALL, *served) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        # It still has to say what the answer took.
        assert process.poll() is None
        rest, stderr = process.communicate(timeout=300)
    assert process.returncode == 0
    assert (first + rest).decode().strip()
    # The figures are the server's own.
    assert re.search(r"── stuff: 1 call, \d+ tokens in, \d+ out, \d", stderr.decode())


def test_a_server_answers_as_json(reference, served):
    data = json.loads(answered(reference, QUESTION, *SMALL, *served, "--method", "refine", "--json")[0])
    assert data["text"].strip()
    assert data["calls"][0]["step"] == "answer"
    assert data["usage"]["estimated"] is False
    ranks = [chunk["rank"] for chunk in data["contexts"][0]["kept"]]
    assert sorted(ranks) == [0, 1]


def test_methods_are_compared_over_a_server(reference, served):
    methods = ["stuff", "map_rerank"]
    stdout, _ = answered(reference, QUESTION, *SMALL, *served, "--compare", ",".join(methods))
    # Without the mark of an estimate.
    assert re.findall(r"^ *(\w+) +\d+ +\d+ +\d+ ", stdout, re.MULTILINE) == methods
    assert re.findall(r"^── (\w+)\n\S", stdout, re.MULTILINE) == methods


def test_a_server_that_is_not_there(reference):
    code, stdout, stderr = ask(
        reference, QUESTION, *SMALL, "--llm", "openai:smollm2", "--base-url", "http://127.0.0.1:9/v1"
    )
    assert (code, stdout) == (1, "")
    assert re.fullmatch(r"Error: the model call 'answer' failed: [^\n]+\n", stderr)


def test_a_key_that_is_missing_is_one_sentence(reference):
    code, stdout, stderr = ask(reference, QUESTION, *SMALL, "--llm", "openai:gpt-5-mini")
    assert (code, stdout) == (2, "")
    assert re.fullmatch(r"Error: cannot use the model 'openai:gpt-5-mini': [^\n]*OPENAI_API_KEY[^\n]*\n", stderr)


def test_the_packaged_model_answers(reference):
    stdout, stderr = answered(reference, QUESTION, *SMALL)
    assert stdout.strip()
    # Nothing of the server that runs inside is shown.
    assert re.fullmatch(r"── stuff: 1 call, \d+ tokens in, \d+ out, \d+\.\d s\n(Note: [^\n]+\n)?", stderr)
