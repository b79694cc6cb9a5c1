"""The outline of a source: its headings, sections or pages, found in its ordered chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from oprag.chunk import Chunk
from oprag.pipeline.headings import Heading, headings_in, title_of
from oprag.pipeline.render import SECTION_FIELDS
from oprag.pipeline.stitch import join_chunks
from oprag.positions.fields import heading_levels
from oprag.positions.readings import page_of

__all__ = ["MAX_LINES", "OutlineEntry", "outline_entries"]

MAX_LINES = 60
"""Maximum number of entries that are shown."""

_MAX_PARTS = 10  # parts of a source without headings, sections and pages
_SECTION_FIELDS = (*SECTION_FIELDS, "title")


class OutlineEntry(NamedTuple):
    """A heading, section, page or part of a source, by its first and last chunk; inside those of a smaller level."""

    level: int
    title: str
    first: int
    last: int


def outline_entries(chunks: Sequence[Chunk], source: str) -> list[OutlineEntry]:
    """Find the parts of a source, given with all of its chunks, placed and in order.

    The first of these that finds more than one: heading metadata ("Header 1"), Markdown headings in the text, section
    metadata ("section", "title"), pages. Without them, about equal parts with the words that each begins with.
    """
    starts = _changes([heading_levels(chunk.metadata) for chunk in chunks])
    if len(starts) < 2:
        starts = headings_in(join_chunks(chunks), source)
    for field in _SECTION_FIELDS:
        if len(starts) < 2:
            starts = _changes([["", _value_of(chunk, field)] for chunk in chunks])
    if len(starts) > 1:
        return _entries(starts, len(chunks))
    pages = _pages(chunks)
    return pages if len(pages) > 1 else _equal_parts(chunks)


def _entries(starts: Sequence[Heading], total: int) -> list[OutlineEntry]:
    """End each entry where the next entry of the same or a higher level begins."""
    last = [total - 1] * len(starts)
    unfinished: list[int] = []
    for number, start in enumerate(starts):
        while unfinished and starts[unfinished[-1]].level >= start.level:
            last[unfinished.pop()] = start.row - (not start.inside)
        unfinished.append(number)
    entries = [
        OutlineEntry(start.level, start.title, start.row, max(start.row, end))
        for start, end in zip(starts, last, strict=True)
    ]
    first = starts[0]
    if first.row > 0 or first.inside:
        level = min(start.level for start in starts)
        entries.insert(0, OutlineEntry(level, "(before the first heading)", 0, first.row - (not first.inside)))
    return entries


def _changes(paths: Iterable[Sequence[str]]) -> list[Heading]:
    """Where the headings of the chunks change, given those of each level over each chunk."""
    starts: list[Heading] = []
    before: Sequence[str] = ()
    for row, path in enumerate(paths):
        for level, heading in enumerate(path):
            if heading and path[: level + 1] != before[: level + 1]:
                starts.append(Heading(level, title_of(heading), row))
        before = path
    return starts


def _value_of(chunk: Chunk, field: str) -> str:
    """The text under a metadata key, ignoring case; empty if the key is missing."""
    values = (value for name, value in chunk.metadata.items() if str(name).lower() == field)
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def _pages(chunks: Sequence[Chunk]) -> list[OutlineEntry]:
    """The pages, combined into ranges if there are more than `MAX_LINES`; none if a chunk has no page."""
    if any(page_of(chunk) is None for chunk in chunks):
        return []
    runs = [(page, list(rows)) for page, rows in groupby(range(len(chunks)), lambda row: page_of(chunks[row]))]
    size = -(-len(runs) // MAX_LINES)
    entries = []
    for start in range(0, len(runs), size):
        combined = runs[start : start + size]
        first, last = combined[0][0], combined[-1][0]
        title = f"page {first}" if first == last else f"pages {first} to {last}"
        entries.append(OutlineEntry(0, title_of(title), combined[0][1][0], combined[-1][1][-1]))
    return entries


def _equal_parts(chunks: Sequence[Chunk]) -> list[OutlineEntry]:
    """Parts with about the same number of chunks."""
    number = min(_MAX_PARTS, len(chunks))
    edges = [len(chunks) * part // number for part in range(number + 1)]
    return [
        OutlineEntry(0, f"begins “{title_of(chunks[first].text)}”", first, after - 1)
        for first, after in pairwise(edges)
    ]
