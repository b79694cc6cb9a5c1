"""Character offsets: reading them, and finding out whether they can be true (kinds 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.chunk import Chunk, Span
from oprag.values import whole

__all__ = ["disagree", "is_exact", "read_offsets", "stated_span"]

# Start and end as splitters and stores name them. Metadata goes before the span that a framework keeps elsewhere, since
# a later correction (`locate_positions`) is written to metadata.
START_FIELDS = {
    "start_index": "end_index",
    "start_char_idx": "end_char_idx",
    "char_start": "char_end",
    "start_char": "end_char",
    "start_offset": "end_offset",
    "split_idx_start": "split_idx_end",
}
_ATTRIBUTE = "span"


def read_offsets(chunks: Sequence[Chunk], fields: set[str]) -> tuple[str, list[Span | None]]:
    """The offsets of each chunk, as its metadata or its framework states them.

    Args:
        chunks: The chunks of one source.
        fields: The metadata keys that occur in them.

    Returns:
        The names of what was read, empty when there is nothing; and a span for each chunk, None where it states none.
        Only a span of the framework states its page itself.
    """
    names = [] if fields.isdisjoint(START_FIELDS) else [name for name in START_FIELDS if name in fields]
    if not names and all(chunk.span is None for chunk in chunks):
        return "", [None] * len(chunks)
    spans: list[Span | None] = []
    read: dict[str, None] = {}
    for chunk in chunks:
        name, span = _read(chunk, names)
        spans.append(span)
        if span is not None:
            read[name] = None
    return ", ".join(read), spans


def stated_span(chunk: Chunk) -> Span | None:
    """The offsets of one chunk, as its metadata or its framework states them."""
    return _read(chunk, [name for name in START_FIELDS if name in chunk.metadata])[1]


def _read(chunk: Chunk, names: Sequence[str]) -> tuple[str, Span | None]:
    metadata = chunk.metadata
    for name in names:
        start = whole(metadata.get(name))
        if start is not None:
            end = whole(metadata.get(START_FIELDS[name]))
            return name, Span(start, end if end is not None and end >= start else start + len(chunk.text))
    if chunk.span is not None:
        start, end = whole(chunk.span[0]), whole(chunk.span[1])
        if start is not None:
            end = end if end is not None and end >= start else start + len(chunk.text)
            return _ATTRIBUTE, Span(start, end, chunk.span.page)
    return "", None


def is_exact(chunk: Chunk, span: Span) -> bool:
    """Whether the chunk's text can be the characters of the span, one by one."""
    return span.end - span.start == len(chunk.text)


def disagree(chunks: Sequence[Chunk], claims: Sequence[tuple[Any, int, int] | None]) -> bool:
    """Whether two chunks claim the same characters of the source with text that differs.

    Offsets that restart in every section or on every page are caught by this: sooner or later two chunks claim the same
    place.

    Args:
        chunks: The chunks of one source.
        claims: Page, start and end of each chunk; None for a chunk that claims nothing.
    """
    if len(chunks) < 2:
        return False
    texts: dict[tuple[Any, int, int], str] = {}
    exact: dict[Any, list[tuple[int, int, str]]] = {}
    for chunk, claim in zip(chunks, claims, strict=True):
        if claim is None:
            continue
        known = texts.setdefault(claim, chunk.text)
        if known != chunk.text:
            return True
        page, start, end = claim
        if known is chunk.text and end - start == len(known):
            exact.setdefault(page, []).append((start, end, known))
    return any(_overlap_differs(sorted(claimed)) for claimed in exact.values())


def _overlap_differs(claimed: list[tuple[int, int, str]]) -> bool:
    """Whether texts that overlap differ there; sorted by start, so each need be held only against the farthest end."""
    far_start, far_end, far_text = claimed[0]
    for start, end, text in claimed[1:]:
        if start < far_end:
            shared = min(end, far_end) - start
            offset = start - far_start
            if far_text[offset : offset + shared] != text[:shared]:
                return True
        if end > far_end:
            far_start, far_end, far_text = start, end, text
    return False
