"""Small sources that are taken whole as soon as one of their chunks is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from oprag import Chunk, Context, build_context, neighbors_among
from oprag.errors import OptionError
from tests.helpers import ranks


def source(name: str, count: int) -> list[Chunk]:
    texts = [f"Part {number} of {name}. " for number in range(count)]
    return [
        Chunk(
            text,
            number,
            metadata={"source": name, "chunk_index": number, "chunk_numbering": "n0123456789ab"},
            id=f"{name} {number}",
        )
        for number, text in enumerate(texts)
    ]


SMALL, LARGE = source("small", 4), source("large", 40)
EVERY = [*SMALL, *LARGE]
SIZE = len(SMALL[0].text)


def context(found: Sequence[Chunk], **options: Any) -> Context:
    hits = [Chunk(one.text, rank, metadata=one.metadata, id=one.id) for rank, one in enumerate(found)]
    given: dict[str, Any] = {
        "whole_source_tokens": 5 * SIZE,
        "count_tokens": len,
        "separator": "",
        "read_neighbors": neighbors_among(EVERY),
    }
    return build_context(hits, **given | options)


def texts(found: Context, name: str) -> list[str]:
    return [chunk.text for chunk in found.kept if chunk.source == name]


def test_neighbors_are_added_to_the_other_sources():
    found = context([SMALL[2], LARGE[7]], neighbors=1)
    assert texts(found, "small") == [one.text for one in SMALL]
    assert texts(found, "large") == [one.text for one in LARGE[6:9]]


def test_the_whole_source_is_charged_at_once_or_left_out():
    four = sum(len(one.text) for one in SMALL)
    found = context([LARGE[7], SMALL[2], LARGE[9]], token_budget=len(LARGE[7].text) + four)
    assert texts(found, "small") == [one.text for one in SMALL]
    assert [(drop.chunk.rank, drop.reason) for drop in found.dropped] == [(2, "token_budget")]
    # One token less: only the selected chunks.
    found = context([LARGE[7], SMALL[2], LARGE[9]], token_budget=len(LARGE[7].text) + four - 1)
    assert ranks(found.kept) == [0, 2, 1]
    assert {drop.reason for drop in found.dropped} == {"token_budget"}
    assert all("the whole source needs" in drop.detail for drop in found.dropped)
    assert found.tokens <= len(LARGE[7].text) + four - 1


def test_at_most_ten_sources_are_read():
    names = [source(f"page {number}", 2) for number in range(12)]
    asked: list[str | None] = []
    read = neighbors_among([one for pages in names for one in pages])

    def recorded(chunk: Chunk, number: int) -> Any:
        asked.append(chunk.source)
        return read(chunk, number)

    found = context([pages[0] for pages in names], read_neighbors=recorded)
    assert asked == [f"page {number}" for number in range(10)]
    assert len(found.kept) == 22


def test_a_source_that_cannot_be_read_keeps_what_was_found():
    found = context([SMALL[2], LARGE[7]], read_neighbors=lambda chunk, number: [])
    assert len(found.kept) == 2
    with pytest.raises(OptionError, match=r"whole_source_tokens=9 requires read_neighbors"):
        build_context(SMALL[:1], whole_source_tokens=9)
