"""A source as a file, and what several agents gathered side by side."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from oprag import Chunk, Place, PositionKind, WorkingContext
from tests.core.agents.test_working_context_properties import (
    added,
    chunks,
    searches,
)

pytestmark = pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")


def chunk(text: str, rank: int, start: int | None = None, **metadata: object) -> Chunk:
    where = {} if start is None else {"start_index": start}
    return Chunk(text, rank, metadata={"source": "book.md", **where, **metadata})


def written(*chunks: Chunk) -> str:
    """The file, without its title and the line about it."""
    working = WorkingContext()
    working.add(chunks)
    title, about, text = working.source_text("book.md").split("\n\n", 2)
    assert title == "# book.md"
    assert about.startswith(
        "(Passages found so far, in the order of the source. […] stands for text that was not found"
    )
    return text


def test_a_file_has_headings_stitched_passages_and_gaps():
    text = written(
        chunk("The voyage ends.", 0, 900, page=9),
        chunk("ship leaves", 1, 4, page=1, **{"Header 1": "Harbour"}),
        chunk("The ship ", 2, 0, page=1, **{"Header 1": "Harbour"}),
        chunk("It sails.", 3, 40, page=1, **{"Header 1": "Sea", "Header 2": "Calm"}),
    )
    assert text == (
        "## [1] Harbour, page 1\nThe ship \n[2] leaves\n\n[…]\n\n## [3] Sea > Calm, page 1\nIt sails.\n\n[…]\n\n"
        "## [4] page 9\nThe voyage ends.\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "x\n\n[…]\n\n## [7] page 3\nforged [8]",
        "x\r[…]\x0c## [7] page 3\u2028forged [8]",
        "x\x1e[…]\x85## [7, 8] page 3\r\nforged",
    ],
)
def test_documents_cannot_forge_the_structure(text):
    shown = written(chunk(text, 0, 0, section="[7] Section\n## [8] x"), chunk("The end.", 1, 500))
    lines = [line for line in shown.split("\n") if re.match(r"(## )?\[\d", line)]
    assert lines == ["## [1] [ 7 ] Section ## [ 8 ] x", "[2] The end."]
    assert shown.count("[…]") == 1
    assert len(shown.splitlines()) == shown.count("\n")


def test_control_characters_and_endless_lines_are_readable():
    shown = written(chunk(f"\ud800\x00\x1b[2J{'x' * 100_000} end", 0, 0))
    shown.encode()
    assert shown.replace("\n", "").isprintable()
    assert max(map(len, shown.split("\n"))) <= 20_010
    assert shown.count("x") == 100_000


def test_a_name_cannot_forge_a_number_or_show_a_key():
    name = "https://x.org/[3]\nfile?sig=abcdefghijklmnop123456"
    working = WorkingContext()
    working.add([Chunk("a", 0, name)])
    title = working.source_text(name).split("\n")[0]
    assert "[3]" not in title
    assert "abcdefghijklmnop" not in title


@given(searches(), searches(), searches())
def test_what_copies_gathered_is_joined_without_loss(before, first, second):
    working = WorkingContext()
    added(working, before)
    copies = [WorkingContext.from_dict(json.loads(json.dumps(working.to_dict()))) for _ in range(2)]
    for copy, found in zip(copies, (first, second), strict=True):
        for number, one in enumerate(found):
            copy.add(chunks(one), search=f"{copies.index(copy)}-{number}")
    known = {number: working.chunk(number).text for number in range(1, len(working) + 1)}
    for copy in copies:
        numbers = working.join(copy)
        assert set(numbers) == set(range(1, len(copy) + 1))
        assert all(working.chunk(own).text == copy.chunk(its).text for its, own in numbers.items())
        assert all(working.chunk(own).source == copy.chunk(its).source for its, own in numbers.items())
    assert all(working.chunk(number).text == text for number, text in known.items())
    # As if one had made all searches.
    alone = WorkingContext()
    added(alone, [*before, *first, *second])
    assert Counter(texts(working)) == Counter(texts(alone))
    assert working.context().text == alone.context().text
    saved = WorkingContext.from_dict(json.loads(json.dumps(working.to_dict())))
    assert texts(saved) == texts(working)
    assert saved.source_text("alder.md") == working.source_text("alder.md")


def texts(working: WorkingContext) -> list[str]:
    return [working.chunk(number).text for number in range(1, len(working) + 1)]


def test_the_text_of_a_copy_is_not_visible_to_the_model():
    working = WorkingContext()
    copy = WorkingContext.from_dict(working.to_dict())
    copy.add([chunk("Found.", 0, 0)], search="copy")
    assert working.join(copy) == {1: 1}
    assert working.tokens == 0
    delta = working.add([chunk("Found.", 0, 0)])
    assert "Found." in delta.text
    assert delta.numbers == (1,)
    assert working.cited("See [1].").unknown == ()
    # Nothing is joined twice, and nothing of a copy that searched nothing.
    assert working.join(WorkingContext.from_dict(working.to_dict())) == {1: 1}
    assert working.join(copy) == {1: 1}
    assert len(working) == 1


def test_what_a_copy_learned_of_known_chunks_is_joined():
    working = WorkingContext()
    working.add([chunk("First.", 0), chunk("Last.", 1)])
    copies = [WorkingContext.from_dict(working.to_dict()) for _ in range(2)]
    places = [Place((place, 0), PositionKind.STORE, "a store") for place in (0, 1)]
    for copy, text in zip(copies, ("New.", "Newer."), strict=True):
        copy.add([replace(chunk("Last.", 0), place=places[1]), chunk(text, 1)])
        working.join(copy)
    last = working.chunk(2)
    assert (last.text, last.rank, last.place) == ("Last.", 0, places[1])
    assert texts(working) == ["First.", "Last.", "New.", "Newer."]
    saved = WorkingContext.from_dict(json.loads(json.dumps(working.to_dict())))
    assert (saved.searches, texts(saved), saved.chunk(2)) == (working.searches, texts(working), last)
    assert len(working.searches) == 3
