"""Contexts to draw maps of."""

from __future__ import annotations

from typing import Any

from oprag import Chunk, Context, build_context


def chunk(rank: int, start: int, end: int, *, source: str = "book", page: int | None = None, **fields: Any) -> Chunk:
    metadata: dict[str, Any] = {"source": source, "start_index": start, "end_index": end}
    if page is not None:
        metadata["page"] = page
    # The letters of one long text, so that offsets do not contradict each other.
    text = "".join(chr(97 + place * place // 7 % 26) for place in range(start, end))
    return Chunk(text, rank, metadata=metadata, **fields)


def context_of(*chunks: Chunk, **options: Any) -> Context:
    return build_context(chunks, stitch=False, **options)
