"""Reading the sources of a store in order: around a passage, a range of chunks, and what a source consists of."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from oprag.assembly.order import key_of
from oprag.assembly.render import render
from oprag.assembly.stitch import stitch
from oprag.chunk import NOWHERE, Chunk, PositionKind, changed, counted
from oprag.context import ContextInputs
from oprag.errors import BudgetError, OptionError, SourceReadError
from oprag.masking import describe
from oprag.methods.answer import without_markers
from oprag.options import ContextOptions, check_count
from oprag.outline import MOST_LINES, OutlineEntry, outline_entries
from oprag.positions.insertion_order import ListedSource, StoredChunk, places_in_store
from oprag.positions.placing import (
    BY_STORE,
    MISSING,
    RESTARTED,
    SHARED_BY_STORE,
    TIED,
    TORN,
    VOID,
    Placed,
    doubts,
    place,
    without_order,
)
from oprag.positions.sources import ID_FIELDS, SOURCE_FIELDS, field_of, source_of
from oprag.positions.values import natural_key
from oprag.steps import run_sync
from oprag.stores.adapter import StoreAdapter, has_own_adapter
from oprag.stores.listing import each_once
from oprag.text_table import one_line, printable, shortened
from oprag.tokens import count

if TYPE_CHECKING:
    from oprag.positions.source_texts import SourceTexts

__all__ = ["Reading", "StoredSources"]

_MOST_CHUNKS = 100_000  # chunks that are looked through for names of sources
_LONGEST_LABEL = 200  # characters of the name of a source
_SUGGESTIONS = 3
_MOST_COMPARED = 1_000  # names, which take about a millisecond each
_ALIKE = 0.5
# What a working context writes before each chunk.
_NUMBER = "[1000] "
_BETWEEN = "\n\n"
# Positions of these kinds are those of several chunks.
_SHARED_KINDS = (PositionKind.PAGE, PositionKind.NONE)
_DOUBTS = {
    RESTARTED: "its chunks were numbered in several calls, which each start at 0",
    TORN: "its chunks are linked in several runs, and nothing tells the order of these",
    BY_STORE: "it is the sequence in which the store received its chunks, which their texts do not confirm",
    SHARED_BY_STORE: "inside a page it is the sequence in which the store received its chunks",
    MISSING: "chunks without a position are at its end",
    TIED: "its chunks share pages or other numbers, and nothing tells their order there",
    VOID: "the offsets of its chunks contradict each other",
}


class Reading(NamedTuple):
    """Chunks of one source that follow each other.

    Attributes:
        chunks: The chunks in order, ranked in this order.
        text: Their text without repetitions, and the note.
        note: In words: which chunks these are, how to go on where the token budget ends, whether their order is
            certain.
    """

    chunks: list[Chunk]
    text: str
    note: str


class StoredSources:
    """The sources of a store that is searched: their chunks in order, numbered from 1, and their outlines.

    Nothing is read that the search could not find: the store lists its chunks with the filter of the search. Their
    order is judged as in retrieval: by their metadata, else by the text of their source, else by the sequence in which
    the store received them. A source whose order is not known is not read; where it is not certain, the reading says
    so.

    Args:
        store: Returns the store with the filter of its search; None where its chunks cannot be held to that.
        options: `source_key`, `position_key` and `count_tokens` are used.
        as_chunk: Makes a chunk with a rank.
        token_budget: Maximum number of tokens of a reading or an outline.
        store_order: Whether the sequence in which the store received chunks is used.
        passes: What the search is restricted to beside its filter.
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
        """Whether the store lists the chunks that its search can find."""
        store = self._store()
        # Nothing is read for this before it is iterated over.
        return store is not None and has_own_adapter(store.store) and store.chunks(ID_FIELDS[0], ()) is not None

    def around(self, chunk: Chunk, before: int = 2, after: int = 2) -> Reading:
        """Read the chunks around one, nearest first as far as the token budget goes.

        Args:
            chunk: A chunk that the search found, with its source.
            before: Number of chunks before it.
            after: Number of chunks after it.

        Raises:
            OptionError: A number is below 0, or the chunk is not in the store.
            SourceReadError: The source cannot be read in order.
            BudgetError: The chunk alone does not fit the token budget.
        """
        check_count("before", before, optional=False, least=0)
        check_count("after", after, optional=False, least=0)
        if chunk.source is None:
            raise SourceReadError("the passage does not say which source it is from, so nothing is known around it")
        ordered = self._ordered(chunk.source, self._chunks_of(chunk.source, chunk))
        at = self._row(chunk, ordered)
        return self._read(ordered, at, max(0, at - before), min(len(ordered.chunks) - 1, at + after))

    def range(self, source: str, start: int, end: int) -> Reading:
        """Read chunks of a source, from the first one as far as the token budget goes.

        Args:
            source: The name of the source.
            start: The number of the first chunk, from 1.
            end: The number of the last chunk.

        Raises:
            OptionError: The source is unknown, a number is below 1, or no chunk has the number `start`.
            SourceReadError: The source cannot be read in order.
            BudgetError: The first chunk alone does not fit the token budget.
        """
        check_count("start", start, optional=False)
        check_count("end", end, optional=False)
        if start > end:
            raise OptionError(f"start must be at most end, got start={start} and end={end}", start)
        ordered = self._resolved(source)
        if start > len(ordered.chunks):
            raise OptionError(
                f"{_label(ordered.source)} has {counted(len(ordered.chunks), 'chunk')}, got start={describe(start)}",
                start,
            )
        return self._read(ordered, start - 1, start - 1, min(end, len(ordered.chunks)) - 1)

    def outline(self, source: str | None = None) -> str:
        """What a source consists of: its headings, sections or pages, else equal parts; or a list of all sources.

        Args:
            source: The name of the source; all sources are listed without one.

        Returns:
            A line for each section, with its first and last chunk and its size in tokens. Where there are too many,
            deeper headings are left out first.

        Raises:
            OptionError: The source is unknown.
            SourceReadError: The source cannot be read in order.
        """
        if source is None or not source.strip():
            return self._list()
        ordered = self._resolved(source)
        chunks = ordered.chunks
        sums = list(accumulate((self._count(chunk.text) for chunk in chunks), initial=0))
        head = f"{_label(ordered.source)}: {counted(len(chunks), 'chunk')}, {counted(sums[-1], 'token')}"
        head += f" ({ordered.doubt})" if ordered.doubt else ""
        entries = outline_entries(chunks, ordered.source)
        levels = sorted({entry.level for entry in entries})
        for deepest in reversed(levels):
            shown = [entry for entry in entries if entry.level <= deepest]
            lines = [_line(entry, levels.index(entry.level), sums) for entry in shown]
            if len(lines) <= MOST_LINES and self._count("\n".join([head, *lines])) <= self._budget:
                return "\n".join([head, *lines])
        return self._cut([head, *lines], "section")

    def _list(self) -> str:
        """All sources with their sizes, by name."""
        chunks: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        unnamed = 0
        for text, name in self._all():
            if name is None:
                unnamed += 1
                continue
            chunks[name] += 1
            tokens[name] += self._count(text)
        lines = [
            f"- {_label(name)}: {counted(chunks[name], 'chunk')}, {counted(tokens[name], 'token')}"
            for name in sorted(chunks, key=natural_key)
        ]
        head = counted(len(lines), "source")
        head += f", and {counted(unnamed, 'chunk')} without a source" if unnamed else ""
        head += f", among the first {_MOST_CHUNKS:,} chunks" if chunks.total() + unnamed >= _MOST_CHUNKS else ""
        return self._cut([f"{head}:" if lines else f"{head}.", *lines], "source")

    def _cut(self, lines: Sequence[str], noun: str) -> str:
        """The first lines that fit, and how many more there are."""
        kept = list(lines[: MOST_LINES + 1])
        while True:
            left = len(lines) - len(kept)
            text = "\n".join([*kept, *([f"({counted(left, f'more {noun}')})"] if left else [])])
            if len(kept) <= 1 or self._count(text) <= self._budget:
                return text
            kept.pop()

    def _count(self, text: str) -> int:
        return count(text, self._options.count_tokens)

    def _listing(self) -> StoreAdapter:
        """The store, if it can list chunks with the filter of the search."""
        store = self._store()
        if store is None or not self.readable():
            which = "what is searched here" if store is None else f"a {store.name}"
            raise SourceReadError(
                f"reading is not possible: {which} cannot list the chunks of a source with the filter of the search; "
                "search instead"
            )
        return store

    def _all(self) -> Iterator[tuple[str, str | None]]:
        """The texts of chunks with their sources, up to a number."""
        rows = (one for one in self._listing().chunks() or () if self._passes(one))
        for rank, stored in enumerate(islice(rows, _MOST_CHUNKS)):
            yield stored.text, source_of(self._as_chunk(stored, rank), self._options.source_key)

    def _resolved(self, source: str) -> _Ordered:
        """The chunks of a source in order, given its name or how a label shows it."""
        if chunks := self._chunks_of(source):
            return self._ordered(source, chunks)
        # Models read labels, in which names are shortened and cleaned.
        wanted = _label(source)
        names = sorted({name for _, name in self._all() if name is not None}, key=natural_key)
        alike = [name for name in names if _label(name) == wanted]
        if len(alike) == 1:
            return self._ordered(alike[0], self._chunks_of(alike[0]))
        if alike:
            raise OptionError(f"{len(alike)} sources are shown as {wanted}; read around one of their passages", source)
        labels = list(dict.fromkeys(map(_label, names)))
        close = [label for label in labels if wanted and wanted.casefold() in label.casefold()]
        close += difflib.get_close_matches(wanted, labels[:_MOST_COMPARED], _SUGGESTIONS, _ALIKE)
        meant = ", ".join(list(dict.fromkeys(close))[:_SUGGESTIONS])
        raise OptionError(
            f"unknown source {wanted}; " + (f"did you mean {meant}?" if meant else "the outline lists all sources"),
            source,
        )

    def _chunks_of(self, source: str, found: Chunk | None = None) -> list[Chunk]:
        """The chunks of a source as the store lists them."""
        store, key = self._listing(), self._options.source_key
        named = () if key is None or callable(key) else (key,) if isinstance(key, str) else key
        known = "" if found is None else field_of([found], key)
        for field in dict.fromkeys((*([known] if known else []), *named, *SOURCE_FIELDS)):
            if chunks := self._named(store.chunks(field, [source]) or (), source):
                return chunks
        # A function names it, or it is a part of what metadata say.
        rows = list(islice(store.chunks() or (), _MOST_CHUNKS + 1))
        chunks = self._named(rows, source)
        if chunks and len(rows) > _MOST_CHUNKS:
            raise SourceReadError(
                f"{_label(source)} cannot be read: the store has more than {_MOST_CHUNKS:,} chunks, and no metadata "
                "key with its name",
                source,
            )
        return chunks

    def _named(self, rows: Iterable[StoredChunk], source: str) -> list[Chunk]:
        """The chunks of a source among those that are listed."""
        chunks = (self._as_chunk(one, rank) for rank, one in enumerate(each_once(filter(self._passes, rows))))
        return [chunk for chunk in chunks if source_of(chunk, self._options.source_key) == source]

    def _ordered(self, source: str, listed: Sequence[Chunk]) -> _Ordered:
        """The chunks of a source in order."""
        if not listed:
            raise OptionError(f"what is searched here has no {_label(source)}", source)
        chunks = [changed(chunk, rank=rank) for rank, chunk in enumerate(listed)]
        placed, refuted = self._placed(chunks)
        report = placed.sources[0]
        if report.kind is PositionKind.NONE and len(chunks) > 1:
            raise SourceReadError(
                f"{_label(source)} cannot be read: the order of its chunks is not known{refuted}; search instead",
                source,
            )
        distinct: dict[Any, Chunk] = {}
        for chunk in sorted(placed.chunks, key=_order):
            position = chunk.position or NOWHERE
            shared = position.kind in _SHARED_KINDS
            # A source that was added twice has copies of its chunks.
            distinct.setdefault(chunk.rank if shared else (key_of(chunk), chunk.text), chunk)
        found_doubts = doubts(placed, placed.chunks, self._options)
        doubt = ""
        if found_doubts:
            why = _DOUBTS.get(found_doubts[0].cause, found_doubts[0].what)
            doubt = f"the order is not certain: {why}{refuted}"
        return _Ordered(source, list(distinct.values()), doubt)

    def _placed(self, chunks: list[Chunk]) -> tuple[Placed, str]:
        """All chunks of a source with their positions, and why the sequence of the store is not used."""
        keys = self._options.source_key, self._options.position_key
        store = self._listing()
        if self._texts is not None and len(chunks) > 1:
            rows = [(str(chunk.rank), 0) for chunk in chunks]
            by_store = self._store_order and store.in_insertion_order
            listed = ListedSource(chunks, rows, lambda chunk: str(chunk.rank), by_store)
            located = self._texts.complete(ContextInputs(chunks), self._options, self._filter, lambda _: listed)
            chunks = run_sync(located).chunks
        placed, refuted = place(chunks, *keys), ""
        if keys[1] is None and self._store_order and store.in_insertion_order and without_order(placed, least=1):
            places, refuted = places_in_store(chunks, store.name)
            if not refuted:
                placed = place(
                    [changed(chunk, store_place=at) for chunk, at in zip(chunks, places, strict=True)], *keys
                )
        return placed, f", and {refuted}" if refuted else ""

    def _row(self, chunk: Chunk, ordered: _Ordered) -> int:
        """The place of a chunk that was found before among those of its source."""
        keys = {chunk.id, self._listing().key(chunk)} - {None}
        rows = [row for row, one in enumerate(ordered.chunks) if one.id in keys]
        if len(rows) != 1:
            rows = [row for row, one in enumerate(ordered.chunks) if one.text == chunk.text]
        if len(rows) > 1:
            facts = chunk.metadata.items()
            rows = [
                row for row in rows if all(ordered.chunks[row].metadata.get(name) == value for name, value in facts)
            ]
        if len(rows) != 1:
            where = "several times" if rows else "not"
            raise OptionError(
                f"the passage is {where} among the chunks of {_label(ordered.source)} in the store; read a range of "
                "its chunks instead",
                chunk,
            )
        return rows[0]

    def _read(self, ordered: _Ordered, at: int, first: int, last: int) -> Reading:
        """The chunks from first to last that fit, nearest to one of them first, and of these the one before."""
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
                    f"{counted(self._count(ordered.chunks[at].text), 'token')}, more than the {self._budget:,} that "
                    "can be read at once",
                    self._budget,
                )
            low, high = (low, high - 1) if high - at >= at - low else (low + 1, high)

    def _charge(self, chunk: Chunk) -> int:
        return self._count(f"{_NUMBER}{chunk.text}{_BETWEEN}")


_PLAIN = ContextOptions()


class _Ordered(NamedTuple):
    """All chunks of a source, in order, and why that is not certain."""

    source: str
    chunks: list[Chunk]
    doubt: str


def _label(name: str) -> str:
    """The name of a source as a model reads it: one line, without what would be read as a number of a passage."""
    return without_markers(shortened(printable(one_line(name)), _LONGEST_LABEL))


def _order(chunk: Chunk) -> Any:
    """Sorts the chunks of a source; those without a position are last."""
    known = chunk.position if chunk.position is not None and chunk.position.known else NOWHERE
    return known is NOWHERE, known.key, chunk.rank


def _numbers(first: int, last: int) -> str:
    return f"chunk {first + 1}" if first == last else f"chunks {first + 1} to {last + 1}"


def _note(ordered: _Ordered, low: int, high: int, first: int, last: int) -> str:
    """Which chunks were read, and what was not."""
    read = _numbers(low, high)
    parts = [f"{read.capitalize()} of {len(ordered.chunks)} of {_label(ordered.source)}"]
    left = [_numbers(*rows) for rows in ((first, low - 1), (high + 1, last)) if rows[0] <= rows[1]]
    if left:
        parts.append(f"no room for {' and '.join(left)}: go on there")
    if ordered.doubt:
        parts.append(ordered.doubt)
    return f"({'; '.join(parts)})"


def _line(entry: OutlineEntry, depth: int, sums: Sequence[int]) -> str:
    tokens = counted(sums[entry.last + 1] - sums[entry.first], "token")
    return f"{'  ' * depth}- {entry.title}: {_numbers(entry.first, entry.last)}, {tokens}"
