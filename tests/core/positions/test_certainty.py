"""What is known, assumed and unknown: the rules of docs/concepts/positions.md as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from oprag import Chunk
from oprag.positions.source_order import Listing, order_of
from tests.helpers import prose

ONE_CALL = {"chunk_numbering": "n0123456789ab"}


def pages(*numbers: Any) -> list[dict[str, Any]]:
    return [{"page": number} for number in numbers]


def labels(*names: str) -> list[dict[str, Any]]:
    return [{"page_label": name} for name in names]


def offsets(*starts: Any) -> list[dict[str, Any]]:
    return [{"start_index": start} for start in starts]


def numbers(*values: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"chunk_index": value, **more} for value in values]


def on_pages(found: Sequence[Mapping[str, Any]], *numbers: Any) -> list[dict[str, Any]]:
    return [{**one, "page": number} for one, number in zip(found, numbers, strict=True)]


ADDED = "in the order in which they were added"
STORE = {
    # The sequence of the store, and what confirms or refutes it.
    "the sequence alone": ([{}] * 5, "abcde", "assumed", ADDED),
    "pages that rise": (pages(1, 1, 2, 2, 3), "abcde", "known", ""),
    "labels that restart": (labels("i", "ii", "1", "2", "3", "1", "2", "3"), "abcdefgh", "known", ""),
    "labels with prefixes": (labels("T-1", "T-2", "i", "ii", "1", "2"), "abcdef", "known", ""),
    "labels in no order": (labels("4", "2", "6", "1", "5", "3"), "dbfaec", "assumed", "page labels alone"),
    "edited chunks of two pages at the end": (pages(1, 1, 1, 2, 2, 3, 3, 1, 2), "abchdeifg", "assumed", ADDED),
    "an edited page at the end": (pages(1, 1, 1, 2, 2, 3, 3, 1, 1, 1), "abchijdefg", "assumed", ADDED),
    "an edited label at the end": (labels(*"1122331111"), None, "unknown", "share a page"),
    "pages of several files": (pages(1, 2, 3, 1, 2, 3), "abcdef", "assumed", ADDED),
    "pages in no order": (pages(1, 1, 0, 0, 1, 1, 0, 0, 0, 1), None, "unknown", "share a page"),
    "a part that fills a gap": (pages(1, 1, 2, 2, 5, 5, 6, 6, 3, 4), "abcdijefgh", "known", ""),
    "an offset of -1": (offsets(0, 90, -1, 270, 360, 450, 540), "abcdefg", "known", ""),
    "a wrong offset": (offsets(0, 90, 180, 20, 360, 450), "abcdef", "known", ""),
    "a wrong first offset": (offsets(900, 90, 180, 270, 360, 450), "abcdef", "known", ""),
    "an offset of -1 after an edited chunk": (offsets(0, 270, 360, 450, 540, 90, -1), "afgbcde", "assumed", ADDED),
    "an edited chunk at the end": (offsets(0, 180, 270, 360, 450, 90), "afbcde", "known", ""),
    "offsets in another order": (offsets(360, 90, 450, 0, 270, 180), "dbfeac", "known", ""),
    "offsets of each page": (on_pages(offsets(0, 90, 0, 90, 180), 1, 1, 2, 2, 2), "abcde", "known", ""),
    "offsets that contradict each other": (offsets(0, 0, 0, 0, 0, 0), "abcdef", "assumed", ADDED),
    "numbers of one call": (numbers(2, 0, 3, 1, **ONE_CALL), "bdac", "known", ""),
    "the last number first": (numbers(5, 0, 1, 2, 3, 4), "bcdefa", "known", ""),
    "the last number of a page first": (on_pages(numbers(1, 0, 0, 1, 2), 2, 1, 2, 3, 3), "bcade", "known", ""),
    "numbers of each page": (on_pages(numbers(0, 1, 0, 1, 0), 1, 1, 2, 2, 3), "abcde", "known", ""),
    "numbers that were written from the store": (
        numbers(2, 0, 3, 1, chunk_numbering="s0123456789ab"),
        "bdac",
        "assumed",
        "",
    ),
}
LIST = {
    # Retrieved chunks, of which no store tells more.
    "nothing": ([{}] * 3, None, "unknown", "have no position"),
    "numbers of one call": (numbers(2, 0, 3, 1, **ONE_CALL), "bdac", "known", ""),
    "numbers of another tool": (numbers(2, 0, 3, 1), "bdac", "assumed", ""),
    "numbers of two calls": (
        [*numbers(0, 1, **ONE_CALL), *numbers(0, 1, chunk_numbering="nba9876543210")],
        None,
        "unknown",
        "stamped in several calls",
    ),
    "offsets": (offsets(360, 90, 450, 0), "dbac", "assumed", ""),
    "an offset of -1": (offsets(360, 90, -1, 0), None, "unknown", "have no position"),
    "offsets that contradict each other": (offsets(0, 0, 0, 0), None, "unknown", "contradict each other"),
    "offsets of each section": (
        [{"start_index": start, "Header 2": name} for start, name in [(0, "One"), (90, "Two"), (40, "Three")]],
        None,
        "unknown",
        "contradict each other",
    ),
    "offsets of sections that do not contradict each other": (
        [{"start_index": start, "Header 2": name} for start, name in [(0, "One"), (900, "Two"), (400, "Three")]],
        None,
        "unknown",
        "contradict each other",
    ),
    "page and offset": (on_pages(offsets(0, 90, 0, 90), 2, 2, 1, 1), "cdab", "assumed", ""),
    "a page for each chunk": (pages(3, 1, 2), "bca", "known", ""),
    "a page for several": (pages(2, 1, 2, 1), None, "unknown", "share a page"),
    "labels": (labels("ii", "1", "i"), "cab", "assumed", "page labels alone"),
}


def chunks_of(metadata: Sequence[Mapping[str, Any]]) -> list[Chunk]:
    return [Chunk(prose(8, seed=rank), rank, metadata=one) for rank, one in enumerate(metadata)]


def letters(keys: Sequence[Any]) -> str | None:
    if None in keys or len(set(keys)) < len(keys):
        return None
    return "".join("abcdefghij"[index] for index in sorted(range(len(keys)), key=keys.__getitem__))


@pytest.mark.parametrize(("metadata", "order", "certainty", "doubt"), STORE.values(), ids=STORE)
def test_a_source_that_a_store_lists(metadata, order, certainty, doubt):
    found = order_of(Listing(chunks_of(metadata), in_sequence=True, complete=True, store="Store"))
    told = [*found.doubts_among()]
    assert (letters(found.keys), found.certainty) == (order, certainty)
    assert doubt in told[0] if doubt else told == []


@pytest.mark.parametrize(("metadata", "order", "certainty", "doubt"), LIST.values(), ids=LIST)
def test_chunks_that_a_search_found(metadata, order, certainty, doubt):
    found = order_of(Listing(chunks_of(metadata)))
    told = [*found.doubts_among()]
    assert (letters(found.keys), found.certainty) == (order, certainty)
    assert doubt in told[0] if doubt else told == []
