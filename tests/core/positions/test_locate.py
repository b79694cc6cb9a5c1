"""What `locate_positions` returns and refuses; where chunks are found is tested with `SourceText`."""

from pathlib import Path
from typing import Any

import pytest

from oprag import Chunk, locate_positions
from oprag.errors import ChunkError, MissingSourceError, SourceWarning
from tests.helpers import prose

TEXT = prose(150, seed=6)


def chunk(text: str, rank: int = 0, **options: Any) -> Chunk:
    return Chunk(text, rank, source="book", **options)


def test_a_chunk_is_found_where_it_stands():
    (located,) = locate_positions([chunk(TEXT[30:90], id="x")], {"book": TEXT})
    assert (located.source, located.start, located.end, located.detail) == ("book", 30, 90, "")
    assert (located.id, located.metadata) == ("x", {"start_index": 30, "end_index": 90})


def test_results_stand_in_the_given_sequence_over_all_sources():
    other = prose(50, seed=7)
    chunks = [chunk(TEXT[50:80]), Chunk(other[10:30], 1, metadata={"url": "other"}), chunk(TEXT[:20])]
    found = locate_positions(iter(chunks), {"book": TEXT, "other": other})
    assert [(located.source, located.start) for located in found] == [("book", 50), ("other", 10), ("book", 0)]
    assert [located.chunk for located in found] == chunks
    assert locate_positions([], {}) == []


@pytest.mark.parametrize(
    ("piece", "text", "detail"),
    [
        ("not in it", "one two", "its text was not found in the source"),
        ("Yes.", "Yes. No. Yes. Yes.", "its text occurs at 3 places in the source, so its position is ambiguous"),
        ("a", "a " * 1_500, "its text occurs at 1,000 or more places in the source, so its position is ambiguous"),
    ],
)
def test_a_chunk_without_an_offset_says_why(piece: str, text: str, detail: str):
    (located,) = locate_positions([chunk(piece)], {"book": text})
    assert (located.start, located.end, located.metadata, located.detail) == (None, None, {}, detail)


def test_the_text_may_be_read_by_a_function_and_named_by_a_path():
    assert locate_positions([chunk(TEXT[40:60])], lambda source: TEXT if source == "book" else "")[0].start == 40
    assert locate_positions([chunk(TEXT[40:60])], {Path("book"): TEXT})[0].start == 40


@pytest.mark.parametrize("texts", [{}, {"book": None}, {"book": b"text"}, lambda source: None])
def test_a_text_that_was_not_given_is_refused(texts: Any):
    with pytest.raises(MissingSourceError, match="source_texts has no text for the source 'book'") as caught:
        locate_positions([chunk("one")], texts)
    assert caught.value.value == "book"


def test_a_chunk_without_a_source_is_refused_unless_a_key_names_it():
    nameless = Chunk("one", 0, metadata={"title": "book"})
    with pytest.raises(MissingSourceError, match=r"metadata keys: title.*source_key") as caught:
        locate_positions([nameless], {"book": "one"})
    assert caught.value.value is nameless
    assert locate_positions([nameless], {"book": "one"}, source_key="title")[0].start == 0
    with pytest.warns(SourceWarning, match="did you mean 'title'"):
        locate_positions([chunk("one", metadata={"title": "book"})], {"book": "one"}, source_key="titel")


def test_something_else_than_a_chunk_is_refused():
    with pytest.raises(ChunkError, match=r"expected oprag\.Chunk objects, got str"):
        locate_positions(["one"], {"book": "one"})  # type: ignore[list-item]
