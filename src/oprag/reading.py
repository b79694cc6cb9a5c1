"""Read the sources of a store in order: around a passage, by a range of chunks, or as an outline."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from oprag.agents.outline import MAX_LINES, OutlineEntry, outline_entries
from oprag.assembly.order import key_of
from oprag.assembly.render import render
from oprag.assembly.stitch import stitch
from oprag.chunk import UNKNOWN_POSITION, Chunk, PositionKind, changed, counted
from oprag.errors import BudgetError, OptionError, SourceReadError
from oprag.masking import describe, shown
from oprag.methods.answer import without_markers
from oprag.options import ContextOptions, check_count
from oprag.positions.fields import SOURCE_FIELDS
from oprag.positions.placing import Placed, doubts, place, undecided
from oprag.positions.source_order import (
    ADDED_AGAIN,
    CONFLICTING_OFFSETS,
    INSERTION_ORDER_ONLY,
    MISSING,
    RESTARTED,
    SHARED_BY_STORE,
    SHARED_POSITION,
    TORN_APART,
    UNLINKED_RUNS,
    Listing,
    order_of,
)
from oprag.positions.sources import source_of
from oprag.positions.values import natural_key
from oprag.stores.adapter import StoreAdapter, StoredChunk, source_in
from oprag.stores.listing import can_list, each_once
from oprag.text_table import one_line, printable
from oprag.tokens import count

if TYPE_CHECKING:
    from oprag.positions.source_texts import SourceTexts

__all__ = ["Reading", "StoredSources"]

_MAX_CHUNKS = 100_000  # chunks that are searched for names of sources
_MAX_LABEL_LENGTH = 200  # characters of the name of a source
_SUGGESTIONS = 3
_MAX_COMPARED = 1_000  # names; comparing one takes about a millisecond
_ALIKE = 0.5
# A working context writes these before each chunk.
_NUMBER = "[1000] "
_BETWEEN = "\n\n"
# Several chunks can have the same position of these kinds.
_SHARED_KINDS = (PositionKind.PAGE, PositionKind.NONE)
_DOUBTS = {
    RESTARTED: "its chunks were numbered in several calls, and each call starts at 0",
    UNLINKED_RUNS: "its chunks are linked in several runs whose relative order is unknown",
    INSERTION_ORDER_ONLY: (
        "it is the sequence in which the store received the chunks, and their texts do not confirm it"
    ),
    SHARED_BY_STORE: "inside a page it is the sequence in which the store received the chunks",
    MISSING: "chunks without a position come last",
    SHARED_POSITION: "several chunks share a page or another number, and their order inside it is unknown",
    CONFLICTING_OFFSETS: "the offsets of its chunks contradict each other",
    TORN_APART: TORN_APART,
    ADDED_AGAIN: ADDED_AGAIN,
}


class Reading(NamedTuple):
    """Consecutive chunks of one source.

    Attributes:
        chunks: The chunks in order; their ranks follow this order.
        text: Their text without repetitions, followed by the note.
        note: Which chunks these are of how many, and why their order is uncertain, if it is. Which chunks did not fit,
            so that the model can continue there.
    """

    chunks: list[Chunk]
    text: str
    note: str


class StoredSources:
    """The sources of the store of a search: their chunks in order, numbered from 1, and their outlines.

    Only chunks that the search can find are read: the store lists its chunks under the filter of the search. Their
    order is determined as in retrieval: by their metadata, else by the text of their source, else by the sequence in
    which the store received them. A source with an unknown order is refused; if its order is uncertain, the note of the
    reading gives the reason.

    Args:
        store: Returns the store with the filter of its search; None if the store cannot apply that filter.
        options: `source_key`, `position_key` and `count_tokens` are used.
        as_chunk: Converts a stored chunk to a chunk with the given rank.
        token_budget: Maximum number of tokens of a reading or an outline.
        store_order: Whether to use the sequence in which the store received the chunks.
        passes: Restrictions of the search other than its filter.
        texts: The texts of sources.
        filter: Returns the filter of the search, for `texts`.

    Raises:
        OptionError: `token_budget` is invalid.
    """

    def __init__(
        self,
        store: Callable[[], StoreAdapter | None],
        options: ContextOptions,
        as_chunk: Callable[[StoredChunk, int], Chunk],
        *,
        token_budget: int = 4_000,
        store_order: bool = True,
        passes: Callable[[StoredChunk], bool] = lambda _: True,
        texts: SourceTexts | None = None,
        filter: Callable[[], Any] = lambda: None,
    ) -> None:
        check_count("token_budget", token_budget, optional=False)
        self._store = store
        self._options = replace(options, order="source")
        self._as_chunk = as_chunk
        self._budget = token_budget
        self._store_order = store_order
        self._passes = passes
        self._texts = texts
        self._filter = filter

    def readable(self) -> bool:
        """Whether the store can list the chunks that its search can find."""
        store = self._store()
        return store is not None and can_list(store)

    def around(self, chunk: Chunk, before: int = 2, after: int = 2) -> Reading:
        """Read the chunks around a chunk, nearest first within the token budget.

        Args:
            chunk: A chunk found by the search, with its source.
            before: Number of chunks to read before it.
            after: Number of chunks to read after it.

        Raises:
            OptionError: `before` or `after` is negative, or the chunk is not in the store.
            SourceReadError: The source cannot be read in order.
            BudgetError: The chunk alone exceeds the token budget.
        """
        check_count("before", before, optional=False, minimum=0)
        check_count("after", after, optional=False, minimum=0)
        if chunk.source is None:
            raise SourceReadError(
                "cannot read around this passage, because its source is unknown; search again instead"
            )
        store = self._open()
        ordered = self._ordered(store, chunk.source, self._list_source(store, chunk.source))
        at = _row(store, chunk, ordered)
        return self._read(ordered, at, max(0, at - before), min(len(ordered.chunks) - 1, at + after))

    def range(self, source: str, start: int, end: int) -> Reading:
        """Read a range of chunks of a source, from its first one within the token budget.

        Args:
            source: The name of the source.
            start: Number of the first chunk, from 1.
            end: Number of the last chunk (inclusive).

        Raises:
            OptionError: The source is unknown, a number is below 1, or `start` is greater than `end` or than the number
                of chunks.
            SourceReadError: The source cannot be read in order.
            BudgetError: The first chunk alone exceeds the token budget.
        """
        check_count("start", start, optional=False)
        check_count("end", end, optional=False)
        if start > end:
            raise OptionError(f"start must be at most end, got start={start} and end={end}", start)
        ordered = self._find(self._open(), source)
        if start > len(ordered.chunks):
            raise OptionError(
                f"{_label(ordered.source)} has {counted(len(ordered.chunks), 'chunk')}, got start={describe(start)}",
                start,
            )
        return self._read(ordered, start - 1, start - 1, min(end, len(ordered.chunks)) - 1)

    def outline(self, source: str | None = None) -> str:
        """The headings, sections or pages of a source, else about equal parts; without a source, a list of all sources.

        Args:
            source: The name of the source; None or blank for a list of all sources.

        Returns:
            One line for each entry with its chunks and its size in tokens. If these do not fit the token budget, the
            deepest headings are dropped first.

        Raises:
            OptionError: The source is unknown.
            SourceReadError: The source cannot be read in order.
        """
        store = self._open()
        if source is None or not source.strip():
            return self._list_all(store)
        ordered = self._find(store, source)
        chunks = ordered.chunks
        sums = list(accumulate((self._count(chunk.text) for chunk in chunks), initial=0))
        head = f"{_label(ordered.source)}: {counted(len(chunks), 'chunk')}, {counted(sums[-1], 'token')}"
        head += f" ({ordered.doubt})" if ordered.doubt else ""
        entries = outline_entries(chunks, ordered.source)
        levels = sorted({entry.level for entry in entries})
        for deepest in reversed(levels):
            shown = [entry for entry in entries if entry.level <= deepest]
            lines = [_line(entry, levels.index(entry.level), sums) for entry in shown]
            if len(lines) <= MAX_LINES and self._count("\n".join([head, *lines])) <= self._budget:
                return "\n".join([head, *lines])
        return self._cut([head, *lines], len(lines), "section")

    def _list_all(self, store: StoreAdapter) -> str:
        """List all sources with their sizes, by name."""
        # Rows, since as many chunks with the objects of a framework take several times the memory.
        groups: dict[str | None, list[StoredChunk]] = {}
        for row, name in self._all(store):
            groups.setdefault(name, []).append(row)
        total = sum(map(len, groups.values()))
        unnamed = len(groups.pop(None, []))
        names = sorted((name for name in groups if name is not None), key=natural_key)
        lines = [self._size_of(store, name, groups[name]) for name in names[:MAX_LINES]]
        head = counted(len(names), "source")
        head += f", and {counted(unnamed, 'chunk')} without a source" if unnamed else ""
        head += f", among the first {_MAX_CHUNKS:,} chunks" if total >= _MAX_CHUNKS else ""
        return self._cut([f"{head}:" if names else f"{head}.", *lines], len(names), "source")

    def _size_of(self, store: StoreAdapter, name: str, rows: Sequence[StoredChunk]) -> str:
        """A line with the size of a source; copies of its chunks are not counted, as in its outline."""
        in_sequence = self._store_order and store.in_insertion_order
        # No source text is read for a list of all sources.
        listed = [self._as_chunk(row, rank) for rank, row in enumerate(rows)]
        placed = self._placed(store, listed, in_sequence=in_sequence, texts=None)
        chunks = _without_copies(placed.chunks)
        tokens = sum(self._count(chunk.text) for chunk in chunks)
        return f"- {_label(name)}: {counted(len(chunks), 'chunk')}, {counted(tokens, 'token')}"

    def _cut(self, lines: Sequence[str], total: int, noun: str) -> str:
        """As many of the lines after the first one as fit, and how many of the total number of them are left out."""
        kept = list(lines[: MAX_LINES + 1])
        while True:
            left = total - (len(kept) - 1)
            text = "\n".join([*kept, *([f"({counted(left, f'more {noun}')})"] if left else [])])
            if len(kept) <= 1 or self._count(text) <= self._budget:
                return text
            kept.pop()

    def _count(self, text: str) -> int:
        return count(text, self._options.count_tokens)

    def _open(self) -> StoreAdapter:
        """The store, resolved once for each call of a tool."""
        store = self._store()
        if store is None or not can_list(store):
            which = "this retriever" if store is None else f"a {store.name}"
            raise SourceReadError(
                f"reading is not possible: {which} cannot list the chunks of a source under the filter of the search; "
                "search instead"
            )
        return store

    def _all(self, store: StoreAdapter) -> Iterator[tuple[StoredChunk, str | None]]:
        """The first chunks of the store, each with the name of its source."""
        rows = each_once(filter(self._passes, store.chunks() or ()))
        for rank, row in enumerate(islice(rows, _MAX_CHUNKS)):
            yield row, source_of(self._as_chunk(row, rank), self._options.source_key)

    def _find(self, store: StoreAdapter, source: str) -> _Ordered:
        """The chunks of a source in order, by its name or its label."""
        listed = self._list_source(store, source)
        if listed.chunks:
            return self._ordered(store, source, listed)
        # Models read labels, which are shortened and cleaned names.
        wanted = _label(source)
        names = sorted({name for _, name in self._all(store) if name is not None}, key=natural_key)
        labels = {name: _label(name) for name in names}
        alike = [name for name, label in labels.items() if label == wanted]
        if len(alike) == 1:
            return self._ordered(store, alike[0], self._list_source(store, alike[0]))
        if alike:
            raise OptionError(f"{len(alike)} sources are shown as {wanted}; read around one of their passages", source)
        distinct = list(dict.fromkeys(labels.values()))
        close = [label for label in distinct if wanted and wanted.casefold() in label.casefold()]
        close += difflib.get_close_matches(wanted, distinct[:_MAX_COMPARED], _SUGGESTIONS, _ALIKE)
        meant = ", ".join(list(dict.fromkeys(close))[:_SUGGESTIONS])
        raise OptionError(
            f"unknown source {wanted}; " + (f"did you mean {meant}?" if meant else "the outline lists all sources"),
            source,
        )

    def _list_source(self, store: StoreAdapter, source: str) -> _Listed:
        """The chunks of a source, whichever metadata key names it in each of them."""
        key = self._options.source_key
        named = () if key is None or callable(key) else (key,) if isinstance(key, str) else key
        in_sequence = self._store_order and store.in_insertion_order
        by_field: dict[str, list[StoredChunk]] = {}
        for field in dict.fromkeys((*named, *SOURCE_FIELDS)):
            rows = store.chunks(field, [source]) or ()
            # Several keys of one chunk can contain the name.
            new = [row for row in rows if all(source_in(row, earlier) != source for earlier in by_field)]
            if new:
                by_field[field] = new
        if len(by_field) == 1:
            (rows,) = by_field.values()
            if chunks := self._named(rows, source):
                return _Listed(chunks, in_sequence)
        # Several keys name the source, and only all rows are in sequence; or a function names it, or its name is only a
        # part of a value.
        everything = list(islice(store.chunks() or (), _MAX_CHUNKS + 1))
        chunks = self._named(everything, source)
        if len(everything) <= _MAX_CHUNKS:
            return _Listed(chunks, in_sequence)
        by_key = self._named((row for rows in by_field.values() for row in rows), source)
        if chunks and not by_key:
            raise SourceReadError(
                f"{_label(source)} cannot be read: the store has more than {_MAX_CHUNKS:,} chunks, and no metadata "
                "key that contains exactly this name; store the name under a key of its own, and set source_key",
                source,
            )
        return _Listed(by_key, in_sequence=False)

    def _named(self, rows: Iterable[StoredChunk], source: str) -> list[Chunk]:
        """The chunks of a source among those of the store."""
        chunks = (self._as_chunk(row, rank) for rank, row in enumerate(each_once(filter(self._passes, rows))))
        return [chunk for chunk in chunks if source_of(chunk, self._options.source_key) == source]

    def _ordered(self, store: StoreAdapter, source: str, listed: _Listed) -> _Ordered:
        """Put the chunks of a source in order."""
        if not listed.chunks:
            raise OptionError(f"{_label(source)} is not in the store", source)
        placed = self._placed(store, listed.chunks, in_sequence=listed.in_sequence, texts=self._texts)
        if placed.sources[0].kind is PositionKind.NONE and len(placed.chunks) > 1:
            raise SourceReadError(
                f"{_label(source)} cannot be read: the order of its chunks is not known; search instead", source
            )
        found_doubts = doubts(placed, placed.chunks, self._options)
        doubt = ""
        if found_doubts:
            doubt = f"the order is uncertain: {_DOUBTS.get(found_doubts[0].cause, found_doubts[0].what)}"
        return _Ordered(source, _without_copies(placed.chunks), doubt)

    def _placed(
        self, store: StoreAdapter, listed: Sequence[Chunk], *, in_sequence: bool, texts: SourceTexts | None
    ) -> Placed:
        """Place all chunks of a source."""
        keys = self._options.source_key, self._options.position_key
        chunks = [changed(chunk, rank=rank) for rank, chunk in enumerate(listed)]
        read = texts and texts.reading(self._filter)
        first = place(chunks, *keys)
        text = read(first.chunks) if read and any(one.in_doubt for one in undecided(first)) else None
        order = order_of(Listing(chunks, in_sequence, complete=True, store=store.name), keys[1], text)
        return place([changed(chunk, place=at) for chunk, at in zip(chunks, order.places, strict=True)], *keys)

    def _read(self, ordered: _Ordered, at: int, first: int, last: int) -> Reading:
        """Read the chunks from first to last that fit, nearest to `at` first; at equal distance, the one before it."""
        left = self._budget - self._count(_note(ordered, at, at, first, last) + _BETWEEN + _label(ordered.source))
        low, high = at, at
        left -= self._charge(ordered.chunks[at])
        sides = [-1, 1]
        while sides and left > 0:
            for side in tuple(sides):
                row = low - 1 if side < 0 else high + 1
                charge = self._charge(ordered.chunks[row]) if first <= row <= last else None
                if charge is None or charge > left:
                    sides.remove(side)
                    continue
                left -= charge
                low, high = min(low, row), max(high, row)
        while True:
            note = _note(ordered, low, high, first, last)
            chunks = ordered.chunks[low : high + 1]
            text = render(stitch(chunks, _BETWEEN), _PLAIN)
            text = f"{text}{_BETWEEN}{note}" if text else note
            if self._count(text) <= self._budget:
                return Reading([changed(chunk, rank=rank) for rank, chunk in enumerate(chunks)], text, note)
            if low == high:
                raise BudgetError(
                    f"chunk {at + 1} of {_label(ordered.source)} has "
                    f"{counted(self._count(ordered.chunks[at].text), 'token')}, more than the token budget of "
                    f"{self._budget:,} per reading; raise token_budget",
                    self._budget,
                )
            low, high = (low, high - 1) if high - at >= at - low else (low + 1, high)

    def _charge(self, chunk: Chunk) -> int:
        return self._count(f"{_NUMBER}{chunk.text}{_BETWEEN}")


_PLAIN = ContextOptions()


class _Listed(NamedTuple):
    """All chunks of a source as the store lists them.

    Attributes:
        chunks: The chunks.
        in_sequence: Whether they are in the sequence in which the store received them, and that sequence may be used.
    """

    chunks: list[Chunk]
    in_sequence: bool


class _Ordered(NamedTuple):
    """All chunks of a source in order.

    Attributes:
        source: The name of the source.
        chunks: The chunks, without copies.
        doubt: Why the order is uncertain; empty if it is not.
    """

    source: str
    chunks: list[Chunk]
    doubt: str


def _without_copies(placed: Iterable[Chunk]) -> list[Chunk]:
    """The chunks of a source in order, without copies, as in a source that was added to the store twice."""
    distinct: dict[Any, Chunk] = {}
    for chunk in sorted(placed, key=_sort_key):
        position = chunk.position or UNKNOWN_POSITION
        shared = position.kind in _SHARED_KINDS
        distinct.setdefault(chunk.rank if shared else (key_of(chunk), chunk.text), chunk)
    return list(distinct.values())


def _sort_key(chunk: Chunk) -> Any:
    """Sorts the chunks of a source; those without a position are last."""
    known = chunk.position if chunk.position is not None and chunk.position.known else UNKNOWN_POSITION
    return known is UNKNOWN_POSITION, known.key, chunk.rank


def _row(store: StoreAdapter, chunk: Chunk, ordered: _Ordered) -> int:
    """The index of a retrieved chunk among those of its source."""
    keys = {chunk.id, store.key(chunk)} - {None}
    rows = [row for row, one in enumerate(ordered.chunks) if one.id in keys]
    if len(rows) != 1:
        rows = [row for row, one in enumerate(ordered.chunks) if one.text == chunk.text]
    if len(rows) > 1:
        facts = chunk.metadata.items()
        rows = [row for row in rows if all(ordered.chunks[row].metadata.get(name) == value for name, value in facts)]
    if len(rows) != 1:
        where = "occurs several times in" if rows else "was not found in"
        raise OptionError(f"the passage {where} {_label(ordered.source)}; read a range instead", chunk)
    return rows[0]


def _label(name: str) -> str:
    """The name of a source on one line, without text that could be read as the number of a passage."""
    return without_markers(printable(one_line(shown(name, _MAX_LABEL_LENGTH))))


def _numbers(first: int, last: int) -> str:
    return f"chunk {first + 1}" if first == last else f"chunks {first + 1} to {last + 1}"


def _note(ordered: _Ordered, low: int, high: int, first: int, last: int) -> str:
    """Which chunks were read, which did not fit, and why the order is uncertain."""
    read = _numbers(low, high)
    parts = [f"{read.capitalize()} of {len(ordered.chunks)} of {_label(ordered.source)}"]
    left = [_numbers(*rows) for rows in ((first, low - 1), (high + 1, last)) if rows[0] <= rows[1]]
    if left:
        parts.append(f"no room for {' and '.join(left)}: continue there")
    if ordered.doubt:
        parts.append(ordered.doubt)
    return f"({'; '.join(parts)})"


def _line(entry: OutlineEntry, depth: int, sums: Sequence[int]) -> str:
    tokens = counted(sums[entry.last + 1] - sums[entry.first], "token")
    return f"{'  ' * depth}- {entry.title}: {_numbers(entry.first, entry.last)}, {tokens}"
