"""`oprag demo`: whether order matters on some files, and one context in both orders."""

import re
from itertools import takewhile
from statistics import mean

import pytest
from langchain_core.language_models import FakeListChatModel

from oprag import DocumentIndex, LocalEmbedder
from tests.cli.commands import run

SUBJECTS = ("crane", "comet", "captain", "harvest", "lantern", "orchard", "tunnel", "violin")


@pytest.fixture
def guide(tmp_path):
    """A Markdown file of many sections, each of which names the subjects of all others."""
    parts = ["# Guide"]
    for number in range(120):
        one, other = SUBJECTS[number % 8], SUBJECTS[(number * 3 + number // 8) % 8]
        parts.append(f"## The {one} of year {number}")
        parts.append(f"In year {number} the {one} stood near the {other}, and nobody repaired it before winter. " * 4)
    path = tmp_path / "guide.md"
    path.write_text("\n\n".join(parts), encoding="utf-8")
    return path


def row(printed: str, name: str) -> list[float]:
    (line,) = [line for line in printed.splitlines() if name in line]
    return [float(number) for number in re.findall(r"([\d.]+)%?(?:\s|$)", line.partition(name)[2])]


def test_files_are_measured_without_a_model(guide, monkeypatch):
    monkeypatch.chdir(guide.parent)
    result = run("demo", guide.name, env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    inverted, *ordered = row(result.stdout, "pairs in the wrong order")
    assert inverted > 10
    assert ordered == [0, 0]
    rank, source, continuous = row(result.stdout, "chunks with a neighbor")
    assert rank == source < continuous
    assert "Answer" not in result.stdout
    assert re.search(r"^Files: [\d,]+ words", result.stdout, re.MULTILINE)


def test_the_share_of_inverted_pairs_is_that_of_the_questions(guide):
    printed = run("demo", str(guide)).stdout
    local = LocalEmbedder()
    index = DocumentIndex.from_texts({str(guide): guide.read_text(encoding="utf-8")}, local, local.tokenizer)
    text = guide.read_text(encoding="utf-8")
    headings = list(dict.fromkeys(re.findall(r"^## (.+)$", text, re.MULTILINE)))[::4]
    sentences = list(dict.fromkeys(re.findall(r"In year [^.]+\.", text)))[::4]
    assert f"{len(headings) + len(sentences)} questions" in printed
    shares = []
    for question in (*headings, *sentences):
        places = [hit.metadata["chunk_index"] for hit in index.search(question, 16)]
        pairs = [(first, second) for at, first in enumerate(places) for second in places[at + 1 :]]
        shares.append(mean(first > second for first, second in pairs))
    assert row(printed, "pairs in the wrong order")[0] == pytest.approx(100 * mean(shares), abs=0.6)


def test_a_short_file_has_no_order_to_measure(tmp_path):
    (tmp_path / "a.txt").write_text("The harbour has nine cranes.", encoding="utf-8")
    result = run("demo", str(tmp_path / "a.txt"))
    assert result.exit_code == 2
    assert "only 1 chunk; a model can read" in result.stderr.replace("\n", " ")


def test_the_language_reference_is_the_default(monkeypatch):
    monkeypatch.setattr("oprag.cli.demo.local_model", lambda: FakeListChatModel(responses=["It is called."]))
    printed = run("demo", env={"COLUMNS": "80"}).stdout
    assert "It is called." in printed
    starts = [int(number.replace(",", "")) for number in re.findall(r"characters ([\d,]+)–", printed)]
    assert re.search(r"^\d+ of \d+ candidates were dropped:$", printed, re.MULTILINE)
    assert len(starts) >= 5
    assert starts == sorted(starts)
    # What a model says, and how to install one, may be longer.
    shown = list(takewhile(lambda line: not line.startswith(("No answer", "Answer of")), printed.splitlines()))
    assert len(shown) < len(printed.splitlines())
    assert max(map(len, shown)) <= 80


def test_files_without_headings_and_sentences_have_no_questions(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(f"crane {number} lifts forty" for number in range(900)), encoding="utf-8")
    result = run("demo", str(tmp_path / "a.txt"))
    assert result.exit_code == 0
    assert "no headings or sentences to make questions of" in result.stdout
    assert "Question: Which crane?" in run("demo", str(tmp_path / "a.txt"), "--question", "Which crane?").stdout
