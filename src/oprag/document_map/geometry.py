"""The places of kept and dropped chunks in their sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

from oprag.chunk import Chunk, DropReason
from oprag.context import Context

__all__ = ["KEPT", "DocumentMap", "Mark", "Row", "Segment", "map_of"]

KEPT = "kept"


class Mark(NamedTuple):
    """A chunk on the line of its source.

    Attributes:
        start: Its first character, counted from the start of the source, all pages before it included.
        end: The character behind its last one.
        chunk: The chunk.
        state: "kept", or the reason why it was dropped.
        detail: The reason in words.
    """

    start: int
    end: int
    chunk: Chunk
    state: str
    detail: str = ""


class Segment(NamedTuple):
    """A part of a line.

    Attributes:
        start: Its first character.
        end: The character after its last one.
        state: The state of the chunk that stands there.
    """

    start: int
    end: int
    state: str


class Row(NamedTuple):
    """One source as a line.

    Attributes:
        source: Its name.
        length: How many characters it has.
        pages: Where each page begins; empty where there are none.
        marks: Its retrieved chunks, best first.
    """

    source: str
    length: int
    pages: tuple[int, ...]
    marks: tuple[Mark, ...]

    def segments(self, states: Sequence[str]) -> list[Segment]:
        """The parts of the line in which chunks stand, one after another.

        Where chunks overlap the first of the states counts.
        """
        borders: list[tuple[int, int, int]] = []
        for number, state in enumerate(states):
            for mark in self.marks:
                start, end = max(0, mark.start), min(self.length, mark.end)
                if mark.state == state and start < end:
                    borders += [(start, 1, number), (end, -1, number)]
        found: list[Segment] = []
        standing = [0] * len(states)
        last = 0
        for place, step, number in sorted(borders):
            if last < place and any(standing):
                first = next(state for state, count in enumerate(standing) if count)
                found.append(Segment(last, place, states[first]))
            last = place
            standing[number] += step
        return found


class DocumentMap(NamedTuple):
    """All sources, and what their chunks are.

    Attributes:
        rows: One for each source.
        counts: How many chunks have each state, "kept" first, then reasons in the sequence in which they are applied.
        unplaced: How many retrieved chunks have no place on any of the lines.
    """

    rows: tuple[Row, ...]
    counts: dict[str, int]
    unplaced: int

    @property
    def states(self) -> tuple[str, ...]:
        """The states that occur, "kept" always."""
        return tuple(self.counts)

    @property
    def length(self) -> int:
        """The characters of all sources."""
        return sum(row.length for row in self.rows)

    def covered(self) -> dict[str, int]:
        """How many characters have each state; "" for those that were not retrieved."""
        found = {"": self.length, **dict.fromkeys(self.states, 0)}
        for row in self.rows:
            for start, end, state in row.segments(self.states):
                found[state] += end - start
                found[""] -= end - start
        return found


def map_of(context: Context, lengths: Mapping[str, int | Sequence[int]]) -> DocumentMap:
    """Find the places of a context's chunks.

    Args:
        context: The context; its chunks need spans.
        lengths: The characters of each source by its name, or of each of its pages.

    Returns:
        A row for each of these sources, in their sequence.
    """
    marks: dict[str, list[Mark]] = {name: [] for name in lengths}
    unplaced = 0
    retrieved = list(_retrieved(context))
    for chunk, state, detail in sorted(retrieved, key=lambda one: one[0].rank):
        name = _name(chunk, lengths)
        place = None if name is None else _place(chunk, lengths[name])
        if name is None or place is None:
            unplaced += 1
        else:
            marks[name].append(Mark(*place, chunk, state, detail))
    rows = tuple(
        Row(name, sum(_pages(length)), _begins(length), tuple(marks[name])) for name, length in lengths.items()
    )
    found = [state for _, state, _ in retrieved]
    return DocumentMap(rows, {state: found.count(state) for state in _in_sequence(found)}, unplaced)


def _retrieved(context: Context) -> Iterator[tuple[Chunk, str, str]]:
    for chunk in context.kept:
        yield chunk, KEPT, ""
    for drop in context.dropped:
        yield drop.chunk, drop.reason, drop.detail


def _in_sequence(found: Sequence[str]) -> list[str]:
    known: list[str] = [KEPT, *get_args(DropReason)]
    return [*(state for state in known if state == KEPT or state in found), *sorted(set(found) - set(known))]


def _name(chunk: Chunk, lengths: Mapping[str, int | Sequence[int]]) -> str | None:
    """The name of the line; `source_key` may have made another source of the chunk."""
    return next((name for name in (chunk.source, chunk.metadata.get("source")) if name in lengths), None)


def _place(chunk: Chunk, length: int | Sequence[int]) -> tuple[int, int] | None:
    span, pages = chunk.span, _pages(length)
    if span is None:
        return None
    page = 1 if span.page is None else span.page
    if not isinstance(page, int) or not 1 <= page <= len(pages) or span.start > pages[page - 1]:
        return None
    before = sum(pages[: page - 1])
    return before + span.start, before + min(span.end, pages[page - 1])


def _pages(length: int | Sequence[int]) -> Sequence[int]:
    return [length] if isinstance(length, int) else length


def _begins(length: int | Sequence[int]) -> tuple[int, ...]:
    return () if isinstance(length, int) else tuple(accumulate(length, initial=0))[:-1]
