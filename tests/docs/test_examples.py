"""The examples run, and show what they say: the same question, the same keys, passages in the order of the source."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
SWAPS = [path for path in EXAMPLES if path.stem.startswith("swap_")]
AGENT = FOLDER / "swap_agent_tool.py"
KEYS = {
    "swap_agent_tool": "messages",
    "swap_conversational_retrieval_chain": "answer, chat_history, question, source_documents",
    "swap_create_retrieval_chain": "answer, context, input",
    "swap_llama_index_agent_tool": "current_agent_name, raw, response, retry_messages, structured_response, tool_calls",
    "swap_llama_index_query_engine": "metadata, response, source_nodes",
    "swap_retrieval_qa": "query, result, source_documents",
}

every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
every_swap = pytest.mark.parametrize("path", SWAPS, ids=lambda path: path.stem)


def one_is_enough(*values):
    """Parameters of a test that runs an example; a quick run of the tests has one of them."""
    return pytest.param(*values, marks=() if "langchain_retriever" in str(values[-1]) else pytest.mark.process)


def run(path, **environment):
    # Deprecations are the frameworks' own, inside their packages.
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", path]
    kept = {name: value for name, value in os.environ.items() if name != "OPRAG_EXAMPLE_MODEL"}
    return subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False, timeout=120)


@cache
def output_of(path):
    result = run(path)
    assert result.returncode == 0, result.stderr
    return result.stdout


def without_figures(text):
    """The lines of a text; figures are those of one version of Python's documentation."""
    return [re.sub(r"\d[\d,.]*", "0", " ".join(line.split())) for line in text.strip().splitlines()]


def orders_in(output):
    """The chunks of the first and of the second run."""
    return [
        [int(number) for number in numbers.split(", ")]
        for numbers in re.findall(r"^ *(?:\w+ order|before|after):.* chunks ([\d, ]+)$", output, re.MULTILINE)
    ]


def lines_in(output, word):
    return re.findall(rf"^(?:before|after): {word} (.*)$", output, re.MULTILINE)


@pytest.mark.parametrize(
    "path", [one_is_enough(path) for path in EXAMPLES if path != AGENT], ids=lambda path: path.stem
)
def test_the_same_passages_come_in_source_order(path):
    rank_order, source_ranking = orders_in(output_of(path))
    assert len(rank_order) == 8
    assert source_ranking == sorted(rank_order)
    assert source_ranking != rank_order


@pytest.mark.parametrize(
    ("page", "example"),
    [
        one_is_enough("langchain", "langchain_retriever"),
        one_is_enough("llama_index", "llama_index_postprocessor"),
    ],
)
def test_the_tutorial_shows_what_is_printed(page, example):
    text = (FOLDER.parent / "docs" / "tutorials" / f"{page}.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert without_figures(shown) == without_figures(output_of(FOLDER / f"{example}.py"))


@pytest.mark.process
@every_swap
def test_a_swap_gives_the_same_keys(path):
    before, after = lines_in(output_of(path), "keys")
    # The state of an agent has one more.
    assert [before, after.removesuffix(", working_context")] == [KEYS[path.stem]] * 2
    assert ("working_context" in after) == (path == AGENT)


@pytest.mark.process
def test_an_agent_reads_each_passage_once_in_source_order():
    output = output_of(AGENT)
    searches = [
        list(map(int, one.split(", "))) for one in re.findall(r"a search showed the chunks (.*)$", output, re.MULTILINE)
    ]
    before, after = searches[:2], searches[2:]
    assert [len(one) for one in before] == [8, 8]
    assert set(before[0]) & set(before[1])
    assert after == [sorted(before[0]), sorted(set(before[1]) - set(before[0]))]
    tokens = [int(number.replace(",", "")) for number in lines_in(output, "tokens")]
    assert tokens[1] < tokens[0]


@pytest.mark.process
def test_an_agent_cites_what_it_read():
    output = output_of(AGENT)
    (cited,) = re.findall(r"^\[(\d+)\] is in python-reference: ", output, re.MULTILINE)
    assert lines_in(output, "answer")[1].endswith(f" [{cited}]")


@pytest.mark.process
@every_swap
def test_a_swap_answers_the_question(path):
    before, after = lines_in(output_of(path), "answer")
    # A sentence of the reference, not of a prompt, nor that there is none.
    for answer in (before, after):
        assert "exception" in answer
        assert len(answer.split()) > 8
        assert "?" not in answer


@pytest.mark.process
def test_the_official_chains_read_what_the_store_ranked():
    """What the swaps show as "before" is the rank order that the retriever itself gives."""
    (ranked, _) = orders_in(output_of(FOLDER / "langchain_retriever.py"))
    for name in ("swap_create_retrieval_chain", "swap_retrieval_qa"):
        (before, _) = orders_in(output_of(FOLDER / f"{name}.py"))
        assert before == ranked
    first, _ = re.findall(r"^before: a search showed the chunks (.*)$", output_of(AGENT), re.MULTILINE)
    assert first == ", ".join(map(str, ranked))


def test_every_official_chain_has_its_swap():
    assert {path.stem for path in SWAPS} == set(KEYS)


@every_example
def test_an_example_is_short_and_says_what_to_install(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    (line,) = re.findall(r"^pip install .*$", text, re.MULTILINE)
    extra = "llama-index" if "llama_index" in path.stem else "langchain"
    assert f"'oprag[{extra},local]'" in line
    # What is imported beyond the extras is in the line as well.
    assert ("from langchain_classic" in text) == ("langchain-classic" in line)


@pytest.mark.process
def test_a_model_of_ones_own_is_asked():
    result = run(FOLDER / "swap_retrieval_qa.py", OPRAG_EXAMPLE_MODEL="no-such-provider:model")
    assert result.returncode != 0
    assert "no-such-provider" in result.stderr
    assert "answer" not in result.stdout


@pytest.mark.process
def test_a_search_tool_shows_nothing_twice():
    output = output_of(FOLDER / "swap_llama_index_agent_tool.py")
    before, after = (int(size.replace(",", "")) for size in re.findall(r"the results have ([\d,]+) characters", output))
    assert after < before
    assert "(already shown)" in output
    assert "[1] is in python-reference at Span(" in output
