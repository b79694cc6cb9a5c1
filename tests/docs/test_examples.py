"""Each example runs when copied to an empty folder, and shows what its docstring says."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from ast import get_docstring, literal_eval, parse
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from docs.example_code import EXAMPLES as FOLDER
from tests.reader import ROOT

EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
ORDERS = [name for name in EXAMPLES if not name.endswith("_agent") and name != "compare_in_python"]

# One is enough for a quick run of the tests.
every_order = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "langchain_retriever" else pytest.mark.process) for name in ORDERS]
)
every_agent = pytest.mark.parametrize("name", ["langchain_agent", "llama_index_agent"])


@cache
def output_of(name):
    with TemporaryDirectory() as folder:
        shutil.copy(FOLDER / f"{name}.py", folder)
        # Deprecations are the frameworks' own, inside their packages.
        command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", f"{name}.py"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}
        result = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=120
        )
    assert result.returncode == 0, result.stderr
    return result.stdout


def orders_in(output):
    """The lists at the end of the first two lines."""
    return [literal_eval(line[line.rindex("[") :]) for line in output.splitlines()[:2]]


@every_order
def test_the_same_passages_are_in_source_order(name):
    before, after = orders_in(output_of(name))
    assert before != after
    assert sorted(before) == sorted(after)
    assert len(before) == (4 if name == "plain_python" else 8)
    if isinstance(after[0], int):
        assert after == sorted(after)
    else:
        # Which passages are best depends on the version of Python, which brings the text.
        places = [(source, int(start)) for source, _, start in (place.rpartition(":") for place in after)]
        sources = list(dict.fromkeys(source for source, _ in places))
        assert places == sorted(places, key=lambda place: (sources.index(place[0]), place[1]))


def test_the_retriever_explains_the_order():
    assert "kind 3, offset: start_index" in output_of("langchain_retriever")


@pytest.mark.process
def test_the_chain_returns_the_same_keys():
    before, after = (line[line.index("[") : line.index("]") + 1] for line in output_of("langchain_chain").splitlines())
    assert before == after == "['answer', 'context', 'input']"


@pytest.mark.process
def test_the_page_about_chains_shows_what_is_printed():
    page = (ROOT / "docs" / "how_to" / "chains_and_engines.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(before: .*?)```", page, re.DOTALL)
    # Offsets are those of one version of Python's reference.
    assert re.sub(r"\d+", "0", shown) == re.sub(r"\d+", "0", output_of("langchain_chain"))


@pytest.mark.process
@every_agent
def test_an_agent_reads_each_passage_once(name):
    first, second, answer, cited = output_of(name).strip().split("\n---\n")
    assert re.findall(r"^\[(\d+)\]", first, re.MULTILINE) == ["1", "2", "3"]
    (pointers,) = re.findall(r"^(\[.*) \(already shown\)$", second, re.MULTILINE)
    shown_again = re.findall(r"\[(\d+)\]", pointers)
    assert {"3"} < set(shown_again) < {"1", "2", "3"}
    assert re.findall(r"^\[(\d+)\](?! \(|, )", second, re.MULTILINE) == ["4"]
    # The number in the answer leads to the text that the model read.
    assert answer.endswith("[3].")
    assert "the exception is suppressed" in cited
    assert cited in first
    assert cited not in second


@pytest.mark.process
def test_plain_python_marks_gaps_and_sources():
    text = output_of("plain_python")
    sources = re.findall(r"^# (\w+), characters \d+ to \d+$", text, re.MULTILINE)
    assert len(sources) == 4
    assert text.count("\n[...]\n") == len(sources) - len(set(sources)) > 0


@pytest.mark.process
def test_the_comparison_finds_equal_coverage_and_no_inversion_in_source_order():
    output = output_of("compare_in_python")
    coverage: dict[str, list[float]] = {}
    inverted: dict[str, list[float]] = {}
    for order, *scores in re.findall(r"^(\w+) \d+ evidence_coverage=(.+) inverted_pairs=(.+)$", output, re.MULTILINE):
        for table, score in zip((coverage, inverted), scores, strict=True):
            table.setdefault(order, []).append(float(score))
    assert coverage["source"] == coverage["rank"] == coverage["random"]
    assert 0.1 < coverage["source"][0] < coverage["source"][1]
    assert inverted["source"] == [0, 0]
    assert min(*inverted["rank"], *inverted["random"]) > 0.2


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_says_what_to_install(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line.strip()]) <= 25
    assert "your model here" in text or not re.search("LLM|Fake", text)
    summary, _, install = (get_docstring(parse(text)) or "").splitlines()
    assert summary.endswith(".")
    (extras,) = re.findall(r"^pip install 'oprag\[([a-z,-]+)\]'", install)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)
    # Packages that are imported, and that the extras do not bring.
    assert ("from langchain_classic" in text) == ("langchain-classic" in install)
    if "from langchain" in text:
        assert "langchain" in extras.split(",")
    assert ("oprag.llama_index" in text) == ("llama-index" in extras)


def test_every_example_is_in_the_table_of_the_folder():
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\)", table, re.MULTILINE)
    assert [link for _, link in listed if not (FOLDER / link).exists()] == []
    scripts_and_notebooks = {path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".ipynb")}
    assert scripts_and_notebooks <= {name for name, _ in listed}


def test_a_folder_of_an_example_needs_no_other():
    imported = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
    modules = {one for path in FOLDER.rglob("*.py") for one in imported.findall(path.read_text(encoding="utf-8"))}
    assert modules & {path.name for path in Path(FOLDER).iterdir() if path.is_dir()} == set()
