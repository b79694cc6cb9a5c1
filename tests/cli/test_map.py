"""`oprag map`, run as a user runs it."""

import json
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from oprag import Chunk, Context, build_context
from oprag.cli.app import app
from oprag.cli.map import KEPT, SourceLine, lines_of, strip
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
    assert "not among the first 4" in output_of(*arguments, "--explain")


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
    output = output_of(book, pages, "quasar", "--search", "bm25")
    first, second = strips(output)
    assert set(first) == {"·"}
    text = len("nothing here" + "a quasar" + "nothing there")
    assert second.index("█") in range(80 * 12 // text - 1, 80 * 12 // text + 2)
    assert "3 pages, 33 characters" in output


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


# Lines and cells


def chunk(rank: int, start: int, end: int, *, source: str = "book", page: int | None = None) -> Chunk:
    metadata = {"source": source, "start_index": start, "end_index": end, **({} if page is None else {"page": page})}
    # The letters of one long text, so that offsets do not contradict each other.
    return Chunk("".join(chr(97 + place * place // 7 % 26) for place in range(start, end)), rank, metadata=metadata)


def context_of(*chunks: Chunk, **options) -> Context:
    return build_context(chunks, stitch=False, **options)


def cells(*chunks, length=100, width=10, **options):
    (line,), counts = lines_of(context_of(*chunks, **options), {"book": length})
    return list(strip(line, list(counts), width))


WHOLE, PART = (KEPT, True), (KEPT, False)


def test_kept_and_dropped_chunks_have_their_place():
    (line,), counts = lines_of(context_of(chunk(0, 50, 60), chunk(1, 10, 20), chunk(2, 0, 10), k=2), {"book": 100})
    assert (line.source, line.length, line.pages) == ("book", 100, 0)
    assert sorted(line.marks) == [(0, 10, "k"), (10, 20, KEPT), (50, 60, KEPT)]
    assert counts == {KEPT: 2, "k": 1}


def test_a_line_for_each_source_in_the_given_sequence():
    context = context_of(chunk(0, 0, 30, source="b"), chunk(1, 5, 30, source="a"))
    lines, _ = lines_of(context, {"c": 10, "a": 40, "b": 30})
    assert [(line.source, len(line.marks)) for line in lines] == [("c", 0), ("a", 1), ("b", 1)]


def test_pages_follow_each_other():
    context = context_of(chunk(0, 0, 20, page=3), chunk(1, 5, 30, page=1), chunk(2, 30, 50, page=3))
    (line,), _ = lines_of(context, {"book": [40, 0, 50]})
    assert (line.pages, line.length) == (3, 90)
    assert sorted(line.marks) == [(5, 30, KEPT), (40, 60, KEPT), (70, 90, KEPT)]


def test_a_source_that_the_caller_named_otherwise_is_found_by_the_metadata():
    (line,), _ = lines_of(context_of(chunk(0, 0, 20), source_key=lambda _: "chapter 1"), {"book": 100})
    assert len(line.marks) == 1


def test_reasons_come_in_the_sequence_of_the_assembly():
    context = context_of(chunk(0, 0, 50), chunk(1, 50, 60), chunk(2, 60, 70), k=1, max_candidates=2)
    assert list(lines_of(context, {"book": 100})[1]) == [KEPT, "max_candidates", "k"]


def test_where_chunks_overlap_the_kept_one_counts():
    (line,), counts = lines_of(context_of(chunk(0, 50, 90), chunk(1, 20, 60), k=1), {"book": 100})
    assert list(line.parts(list(counts))) == [(20, 50, "k"), (50, 60, KEPT), (60, 90, KEPT)]


def test_each_cell_says_what_is_there():
    found = cells(chunk(0, 20, 40), chunk(1, 60, 63), chunk(2, 80, 100), k=2)
    dropped = ("k", True)
    assert [state for state, _ in found] == ["", "", KEPT, KEPT, "", "", KEPT, "", "k", "k"]
    assert [found[place] for place in (2, 3, 6, 8, 9)] == [WHOLE, WHOLE, PART, dropped, dropped]


def test_anything_kept_shows_before_anything_dropped():
    assert cells(chunk(0, 0, 2), chunk(1, 2, 10), k=1, length=10, width=1) == [PART]


def test_of_several_reasons_the_one_for_most_shows():
    found = cells(chunk(0, 90, 100), chunk(1, 20, 24), chunk(2, 30, 50), k=1, max_candidates=2, length=100, width=2)
    assert found == [("max_candidates", False), PART]


@pytest.mark.parametrize("length", [1, 3, 9, 10])
def test_a_short_source_fills_the_strip(length):
    assert cells(chunk(0, 0, length), length=length, width=10) == [WHOLE] * 10


def test_a_source_without_text_is_an_empty_strip():
    assert [state for state, _ in cells(length=0)] == [""] * 10


@given(st.integers(1, 300), st.integers(1, 80), st.data())
def test_nothing_that_was_kept_gets_lost(length, width, data):
    start = data.draw(st.integers(0, length - 1))
    end = data.draw(st.integers(start + 1, length))
    found = [state for state, _ in cells(chunk(0, start, end), length=length, width=width)]
    assert len(found) == width
    for number, state in enumerate(found):
        first, last = number * length / width, (number + 1) * length / width
        if start <= first and last <= end:
            assert state == KEPT
        if state == KEPT:
            assert first - 1 <= end
            assert start <= last + 1
    assert KEPT in found


def test_a_source_of_any_length_takes_no_memory():
    length = 10**15
    line = SourceLine("book", length, 0, [(0, length // 5, KEPT), (length // 10, length, "k")])
    assert list(strip(line, (KEPT, "k"), 5)) == [WHOLE, *[("k", True)] * 4]
