"""`oprag map`, run as a user runs it."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from tests.helpers import prose
from tests.pdfs import pdf

TEXT = prose(600, seed=12)
WORDS = TEXT.split()
QUESTION = f"{WORDS[500]} {WORDS[20]} {WORDS[300]}"
BLOCKS = "█▄▒░▚▪▫◆◇○·"


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def run(*arguments, command="map", width=80):
    return CliRunner().invoke(app, [command, *map(str, arguments)], env={"COLUMNS": str(width)})


def output_of(*arguments, **kwargs):
    result = run(*arguments, **kwargs)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def strips(output):
    return re.findall(rf"^[{BLOCKS}]+$", output, re.MULTILINE)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_a_strip_is_as_wide_as_the_terminal(book, width):
    options = ("--k", 3, "--chunk-size", 30, "--splitter", "recursive", "--search", "bm25")
    output = output_of(book, QUESTION, *options, width=width)
    (strip,) = strips(output)
    assert len(strip) == width
    # The three chunks with a word of the question.
    for number in (20, 300, 500):
        place = TEXT.index(WORDS[number]) * width // len(TEXT)
        assert strip[place] in "█▄"
    assert f"{len(TEXT):,} characters" in output
    assert "█ kept: 3 chunks" in output


def test_what_came_close_is_shown_as_dropped(book):
    arguments = (book, QUESTION, "--k", 4, "--chunk-size", 30)
    output = output_of(*arguments)
    assert "kept: 4 chunks" in output
    assert "▒ dropped by max_candidates: 4 chunks" in output
    assert "▒" in strips(output)[0]
    assert "behind the first 4" in output_of(*arguments, "--explain")


@pytest.mark.parametrize(
    "options",
    [
        ("--k", 3),
        ("--k", 3, "--max-candidates", 6),
        ("--k", 5, "--redundancy-threshold", 0.3),
        ("--k", 5, "--similarity-threshold", 0.3, "--search", "hybrid"),
        ("--token-budget", 300, "--search", "bm25"),
        ("--k", 2, "--neighbors", 1),
    ],
)
def test_it_keeps_what_context_keeps(book, options):
    arguments = (book, QUESTION, "--chunk-size", 30, *options, "--json")
    drawn, told = json.loads(output_of(*arguments)), json.loads(output_of(*arguments, command="context"))
    assert [one["span"] for one in drawn["kept"]] == [one["span"] for one in told["kept"]]
    assert drawn["lengths"] == {str(book): len(TEXT)}
    dropped = {(one["rank"], one["reason"]) for one in drawn["dropped"]}
    assert {(one["rank"], one["reason"]) for one in told["dropped"]} <= dropped


def test_a_strip_for_each_file_pages_one_behind_another(book, tmp_path):
    pages = tmp_path / "pages.pdf"
    pages.write_bytes(pdf("nothing here", "a quasar", "nothing there"))
    output = output_of(book, pages, "quasar", "--search", "bm25", "--svg", tmp_path / "map.svg")
    first, second = strips(output)
    assert set(first) == {"·"}
    text = len("nothing here" + "a quasar" + "nothing there")
    assert second.index("█") in range(80 * 12 // text - 1, 80 * 12 // text + 2)
    assert "3 pages, 33 characters" in output
    assert "page 2, characters 0–8" in (tmp_path / "map.svg").read_text(encoding="utf-8")


def test_every_state_has_a_glyph_of_its_own(book):
    options = ("--k", 6, "--similarity-threshold", 0.3, "--redundancy-threshold", 0.9, "--token-budget", 60)
    output = output_of(book, QUESTION, "--chunk-size", 20, *options)
    legend = re.findall(r"^(\S) (kept|dropped by \w+|not retrieved)", output, re.MULTILINE)
    assert len(legend) >= 4
    assert len({glyph for glyph, _ in legend}) == len(legend)
    shares = [float(share) for share in re.findall(r"([\d.]+)% of the text", output)]
    assert sum(shares) == pytest.approx(100, abs=0.5)


@pytest.mark.process
def test_a_terminal_without_unicode_gets_letters(book):
    command = [sys.executable, "-c", "from oprag.cli import main; main()", "map", str(book), QUESTION, "--k", "3"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "70"}
    result = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert re.search(rb"^[#=xo.]{70}\r?$", result.stdout, re.MULTILINE)


def test_the_picture_is_written_whole(book, tmp_path):
    path = tmp_path / "map.svg"
    output_of(book, "Another question?", "--svg", path)
    output = output_of(book, QUESTION, "--k", 3, "--svg", path)
    assert "kept: 3 chunks" in output
    root = ET.parse(path).getroot()
    assert QUESTION in "".join(root.itertext())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["book.txt", "map.svg"]


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("", "it is a folder"),
        (".", "it is a folder"),
        ("missing/map.svg", "make it first"),
        ("book.txt", "would be written over"),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_first(book, tmp_path, monkeypatch, place, why):
    monkeypatch.chdir(tmp_path)
    result = run(book, QUESTION, "--svg", place)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert why in result.stderr


def test_escape_sequences_do_not_reach_the_terminal(tmp_path):
    path = tmp_path / "host\x1b[31mile.txt"
    path.write_text("before \x1b]0;owned\x07 after")
    assert "\x1b" not in output_of(path, "before", "--explain")


def test_words_that_are_nowhere_are_an_empty_map(book):
    output = output_of(book, "quasar", "--search", "bm25")
    assert set(strips(output)[0]) == {"·"}
    assert "kept: 0 chunks" in output


def test_an_empty_question_is_refused(book):
    result = run(book, " ")
    assert result.exit_code == 2
    assert "the question is empty" in result.stderr
