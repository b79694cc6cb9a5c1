"""Read the sources of a store in order: around a passage, a range of chunks, an outline, or what contains a text."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from oprag._internal.masking import describe
from oprag._internal.tokens import count
from oprag.agents.grep import TIME_LIMIT, Pattern
from oprag.agents.numbered_text import source_label
from oprag.agents.outline import MAX_LINES, OutlineEntry, outline_entries
from oprag.chunk import Chunk, PositionKind, changed, counted
from oprag.errors import BudgetError, OptionError, SourceReadError
from oprag.options import ContextOptions, check_count
from oprag.pipeline.render import render
from oprag.pipeline.stitch import join_chunks, stitch
from oprag.positions.fields import SOURCE_FIELDS
from oprag.positions.source_names import source_of
from oprag.positions.source_order import Listing, order_of
from oprag.positions.values import natural_key
from oprag.stores.adapter import StoreAdapter, StoredChunk, source_in
from oprag.stores.listing import can_list, chunks_in_search, each_once

if TYPE_CHECKING:
    from oprag.positions.source_reader import SourceTexts

__all__ = ["Reading", "StoredSources"]

T = TypeVar("T")

_MAX_CHUNKS = 100_000  # chunks that are listed for all sources
_SUGGESTIONS = 3
# A working context writes these before each chunk.
_NUMBER = "[1000] "
_BETWEEN = "\n\n"
# Several chunks can have the same position of these kinds.
_SHARED_KINDS = (PositionKind.PAGE, PositionKind.NONE)


class Reading(NamedTuple):
    """Chunks of one or several sources, in source order."""

    chunks: list[Chunk]  # the chunks in order; their ranks follow this order
    text: str  # their text without repetitions, followed by the note
    # Which chunks these are of how many, and why their order is uncertain, if it is. Which chunks did not fit, so
    # that the model can continue there.
    note: str


@dataclass(frozen=True)
class StoredSources:
    """The sources of the store of a search: their chunks in order, numbered from 1, and their outlines.

    Only chunks that the search can find are read: the store lists its chunks under the filter of the search. Their
    order is determined as in retrieval: by their metadata, else by the text of their source, else by the sequence in
    which the store received them. A source with an unknown order is only searched, not read; if its order is uncertain,
    the note of the reading gives the reason.
    """

    # Returns the store with the filter of its search; None if the store cannot apply that filter.
    store: Callable[[], StoreAdapter | None]
    options: ContextOptions  # `source_key`, `position_key` and `count_tokens` are used
    as_chunk: Callable[[StoredChunk, int], Chunk]  # converts a stored chunk to a chunk with the given rank
    token_budget: int = 4_000  # maximum number of tokens of a reading or an outline
    store_order: bool = True  # whether to use the sequence in which the store received the chunks
    texts: SourceTexts | None = None
    filter: Callable[[], Any] = lambda: None  # returns the filter of the search, for `texts`

    def __post_init__(self) -> None:
        check_count("token_budget", self.token_budget, optional=False)

    def readable(self) -> bool:
        """Whether the store can list the chunks that its search can find."""
        store = self.store()
        return store is not None and can_list(store)

    def around(self, chunk: Chunk, before: int = 2, after: int = 2) -> Reading:
        """Read the chunks around a retrieved chunk, nearest first within the token budget."""
        check_count("before", before, optional=False, minimum=0)
        check_count("after", after, optional=False, minimum=0)
        if chunk.source is None:
            raise SourceReadError(
                "cannot read around this passage, because its source is unknown; search again instead"
            )
        store = self._open()
        ordered = self._find(store, chunk.source).in_order()
        at = _row(store, chunk, ordered)
        return self._read(ordered, at, max(0, at - before), min(len(ordered.chunks) - 1, at + after))

    def range(self, source: str, start: int, end: int) -> Reading:
        """Read chunks of a source, by their numbers from 1, from the first one within the token budget."""
        check_count("start", start, optional=False)
        check_count("end", end, optional=False)
        if start > end:
            raise OptionError(f"start must be at most end, got start={start} and end={end}", start)
        ordered = self._find(self._open(), source).in_order()
        total = len(ordered.chunks)
        if start > total:
            raise OptionError(f"{ordered.label} has {counted(total, 'chunk')}, got start={describe(start)}", start)
        return self._read(ordered, start - 1, start - 1, min(end, total) - 1)

    def outline(self, source: str | None = None) -> str:
        """The headings, sections or pages of a source, else about equal parts; without a source, a list of all sources.

        Each line has the chunks of an entry and its size in tokens; the deepest headings are dropped first.
        """
        store = self._open()
        if source is None or not source.strip():
            return self._list_all(store)
        ordered = self._find(store, source).in_order()
        texts = [chunk.text for chunk in ordered.chunks]
        head = self._size(ordered.label, texts) + (f" ({ordered.doubt})" if ordered.doubt else "")
        entries = outline_entries(ordered.chunks, ordered.source)
        sums = list(accumulate(map(self._count, texts), initial=0))
        levels = sorted({entry.level for entry in entries})
        for deepest in reversed(levels):
            lines = [_line(entry, levels.index(entry.level), sums) for entry in entries if entry.level <= deepest]
            if len(lines) <= MAX_LINES and self._count("\n".join([head, *lines])) <= self.token_budget:
                break
        return self._cut([head, *lines], len(lines), "section")

    def grep(
        self,
        pattern: str,
        source: str | None = None,
        *,
        regex: bool = False,
        ignore_case: bool = False,
        limit: int = 20,
    ) -> Reading:
        """Search the text of a source, or of all sources by name, and read the chunks with hits in source order.

        A hit may extend over several chunks. After `TIME_LIMIT` seconds of searching, without the time that the store
        takes to list its chunks, the hits that were found so far are returned.
        """
        check_count("limit", limit, optional=False)
        searched = Pattern(pattern, regex=regex, ignore_case=ignore_case)
        store = self._open()
        unsearched = ""
        sources: Iterable[_Ordered]
        if source is not None and source.strip():
            sources = [self._find(store, source)]
        else:
            groups = self._groups(store)
            # A chunk without a source is one.
            parts = ((name, its) for name, rows in groups.items() for its in ([rows] if name else zip(rows)))
            sources = (self._order(store, name, its) for name, its in parts)
            if sum(map(len, groups.values())) >= _MAX_CHUNKS:
                unsearched = f"only the first {_MAX_CHUNKS:,} chunks of the store were searched: name a source"
        hits = total = 0
        found: dict[tuple[int, int], tuple[_Ordered, int]] = {}
        try:
            for number, ordered in enumerate(sources):
                joined = join_chunks(ordered.chunks)
                for span in searched.spans(joined.text):
                    hits += 1
                    found |= {(number, row): (ordered, row) for row in joined.rows_of(*span)}
                total += len(ordered.chunks)
        except TimeoutError:
            unsearched = f"stopped after {TIME_LIMIT:g} s: name a source, or use a simpler pattern"
        rows = list(found.values())
        if not rows:
            nothing = f"no hits in {counted(total, 'chunk')}"
            return Reading([], f"({'; '.join(filter(None, [nothing, unsearched]))})", "")

        def first(number: int) -> Reading:
            chunks = [ordered.chunks[row] for ordered, row in rows[:number]]
            note = _note_of_hits(rows, number, f"{counted(hits, 'hit')} in {counted(len(rows), 'chunk')}", unsearched)
            return _reading(chunks, note, _LABELLED)

        growing = ((ordered.chunks[row], number) for number, (ordered, row) in enumerate(rows[:limit], 1))
        return self._largest(growing, first) or self._over_budget(*rows[0])

    def _list_all(self, store: StoreAdapter) -> str:
        """List all sources with their sizes, by name."""
        groups = self._groups(store)
        total, unnamed = sum(map(len, groups.values())), len(groups.pop("", []))
        lines = [
            f"- {self._size(source_label(name), [row.text for row in rows])}"
            for name, rows in islice(groups.items(), MAX_LINES)
        ]
        head = counted(len(groups), "source")
        head += f", and {counted(unnamed, 'chunk')} without a source" if unnamed else ""
        head += f", among the first {_MAX_CHUNKS:,} chunks" if total >= _MAX_CHUNKS else ""
        return self._cut([f"{head}:" if groups else f"{head}.", *lines], len(groups), "source")

    def _size(self, label: str, texts: Sequence[str]) -> str:
        tokens = sum(map(self._count, texts))
        return f"{label}: {counted(len(texts), 'chunk')}, {counted(tokens, 'token')}"

    def _cut(self, lines: Sequence[str], total: int, noun: str) -> str:
        """As many of the lines after the first one as fit, and how many of the total number of them are left out."""
        kept = list(lines[: MAX_LINES + 1])
        while True:
            left = total - (len(kept) - 1)
            text = "\n".join([*kept, *([f"({counted(left, f'more {noun}')})"] if left else [])])
            if len(kept) <= 1 or self._count(text) <= self.token_budget:
                return text
            kept.pop()

    def _count(self, text: str) -> int:
        return count(text, self.options.count_tokens)

    def _open(self) -> StoreAdapter:
        """The store, resolved once for each call of a tool."""
        store = self.store()
        if store is None or not can_list(store):
            which = "this retriever" if store is None else f"a {store.name}"
            raise SourceReadError(
                f"reading is not possible: {which} cannot list the chunks of a source under the filter of the search; "
                "search instead"
            )
        return store

    def _groups(self, store: StoreAdapter) -> dict[str, list[StoredChunk]]:
        """The first chunks of the store by the names of their sources, sorted; those without a source under ""."""
        # Rows, since as many chunks with the objects of a framework take several times the memory.
        groups: dict[str, list[StoredChunk]] = {}
        for rank, row in enumerate(islice(each_once(chunks_in_search(store) or ()), _MAX_CHUNKS)):
            groups.setdefault(source_of(self.as_chunk(row, rank), self.options.source_key) or "", []).append(row)
        return dict(sorted(groups.items(), key=lambda group: natural_key(group[0])))

    def _find(self, store: StoreAdapter, source: str) -> _Ordered:
        """The chunks of a source in order, by its name or its label."""
        if rows := self._list_source(store, source):
            return self._order(store, source, rows)
        groups = self._groups(store)
        # Models read labels, which are shortened and cleaned names.
        wanted = source_label(source)
        labels = {name: source_label(name) for name in groups if name}
        alike = [source] if source in labels else [name for name, label in labels.items() if label == wanted]
        if len(alike) == 1:
            rows = self._list_source(store, alike[0])
            if not rows and sum(map(len, groups.values())) >= _MAX_CHUNKS:
                raise SourceReadError(
                    f"{wanted} cannot be read: the store has more than {_MAX_CHUNKS:,} chunks, and this name is not "
                    "the value of the same metadata key in all of them; store it under one key, and set source_key",
                    source,
                )
            return self._order(store, alike[0], rows or groups[alike[0]])
        if alike:
            raise OptionError(f"{len(alike)} sources are shown as {wanted}; read around one of their passages", source)
        close = [label for label in dict.fromkeys(labels.values()) if wanted and wanted.casefold() in label.casefold()]
        meant = ", ".join(close[:_SUGGESTIONS])
        hint = f"did you mean {meant}?" if meant else "the outline lists all sources"
        raise OptionError(f"unknown source {wanted}; {hint}", source)

    def _list_source(self, store: StoreAdapter, source: str) -> list[StoredChunk]:
        """The chunks of a source if one metadata key has its name; of several keys, only all rows are in sequence."""
        key = self.options.source_key
        named = () if key is None or callable(key) else (key,) if isinstance(key, str) else key
        by_field: dict[str, list[StoredChunk]] = {}
        for field in dict.fromkeys((*named, *SOURCE_FIELDS)):
            rows = chunks_in_search(store, field, [source]) or ()
            # Several keys of one chunk can contain the name.
            if new := [row for row in rows if all(source_in(row, earlier) != source for earlier in by_field)]:
                by_field[field] = new
        if len(by_field) != 1:
            return []
        (rows,) = by_field.values()
        # Its name may be that of another source in another key, or a function may name it otherwise.
        return [row for row in each_once(rows) if source_of(self.as_chunk(row, 0), key) == source]

    def _order(self, store: StoreAdapter, source: str, rows: Sequence[StoredChunk]) -> _Ordered:
        """Put the chunks of a source in order, without copies, as in a source that was added to the store twice."""
        chunks = [changed(self.as_chunk(row, rank), source=source or None) for rank, row in enumerate(rows)]
        in_sequence = self.store_order and store.in_insertion_order
        listing = Listing(chunks, in_sequence, complete=True, store=store.name)
        order = order_of(listing, self.options.position_key)
        texts = self.texts if len(chunks) > 1 and order.uncertain else None
        reading = texts.reading(self.filter) if texts else None
        if reading and (text := reading(chunks)):
            order = order_of(listing, self.options.position_key, text)
        indices = sorted(range(len(chunks)), key=lambda index: (order.keys[index] is None, order.keys[index] or ()))
        places, positions = order.places, order.positions
        distinct: dict[Any, Chunk] = {}
        for index in indices:
            chunk = changed(chunks[index], place=places[index], position=positions[index], span=order.spans[index])
            shared = order.keys[index] is None or order.kind in _SHARED_KINDS
            distinct.setdefault(index if shared else (order.keys[index], chunk.text), chunk)
        known = order.kind is not PositionKind.NONE or len(chunks) == 1
        # The first part of the cause; the others say what retrieval does.
        doubts = [f"the order is uncertain: {cause.partition(', ')[0]}" for cause in order.doubts_among(indices)]
        return _Ordered(source, list(distinct.values()), doubts[0] if doubts else "", known)

    def _read(self, ordered: _Ordered, at: int, first: int, last: int) -> Reading:
        """Read the chunks from first to last that fit, nearest to `at` first; at equal distance, the one before it."""

        def growing() -> Iterator[tuple[Chunk, tuple[int, int]]]:
            low, high = at, at
            yield ordered.chunks[at], (low, high)
            while (low, high) != (first, last):
                before = low > first and (high == last or at - low <= high - at)
                low, high = (low - 1, high) if before else (low, high + 1)
                yield ordered.chunks[low if before else high], (low, high)

        def read(window: tuple[int, int]) -> Reading:
            low, high = window
            return _reading(ordered.chunks[low : high + 1], _note(ordered, low, high, first, last), ContextOptions())

        return self._largest(growing(), read) or self._over_budget(ordered, at)

    def _largest(self, growing: Iterable[tuple[Chunk, T]], read: Callable[[T], Reading]) -> Reading | None:
        """The largest reading that fits the token budget, of several that each have one chunk more."""
        left = self.token_budget
        candidates: list[T] = []
        for chunk, candidate in growing:
            left -= self._count(chunk.text)
            if left < 0:
                break
            candidates.append(candidate)
        fitting = bisect(candidates, 0, key=lambda one: self._excess(read(one)))
        return read(candidates[fitting - 1]) if fitting else None

    def _excess(self, reading: Reading) -> int:
        """Tokens of a reading over the budget, also with the numbers and names of a working context."""
        names = dict.fromkeys(source_label(chunk.source or "") for chunk in reading.chunks)
        numbered = _BETWEEN.join([*names, *(f"{_NUMBER}{chunk.text}" for chunk in reading.chunks), reading.note])
        return max(self._count(reading.text), self._count(numbered)) - self.token_budget

    def _over_budget(self, ordered: _Ordered, row: int) -> NoReturn:
        raise BudgetError(
            f"chunk {row + 1} of {ordered.label} has {counted(self._count(ordered.chunks[row].text), 'token')}, more "
            f"than the token budget of {self.token_budget:,} per reading; raise token_budget",
            self.token_budget,
        )


class _Ordered(NamedTuple):
    """All chunks of a source in order, without copies."""

    source: str  # empty for a chunk that does not name one
    chunks: list[Chunk]
    doubt: str  # why the order is uncertain, if it is
    known: bool  # whether anything tells the order

    @property
    def label(self) -> str:
        return source_label(self.source) or "an unnamed source"

    def in_order(self) -> _Ordered:
        """Refuse a source with an unknown order."""
        if not self.known:
            raise SourceReadError(
                f"{self.label} cannot be read: the order of its chunks is not known; search instead", self.source
            )
        return self


def _row(store: StoreAdapter, chunk: Chunk, ordered: _Ordered) -> int:
    """The index of a retrieved chunk among those of its source."""
    keys = {chunk.id, store.key(chunk)} - {None}
    rows = [row for row, one in enumerate(ordered.chunks) if one.id in keys]
    if len(rows) != 1:
        rows = [row for row, one in enumerate(ordered.chunks) if one.text == chunk.text]
    if len(rows) != 1:
        where = "occurs several times in" if rows else "was not found in"
        raise OptionError(f"the passage {where} {ordered.label}; read a range instead", chunk)
    return rows[0]


def _reading(chunks: Sequence[Chunk], note: str, options: ContextOptions) -> Reading:
    text = render(stitch(chunks, _BETWEEN), options)
    ranked = [changed(chunk, rank=rank) for rank, chunk in enumerate(chunks)]
    return Reading(ranked, f"{text}{_BETWEEN}{note}" if text else note, note)


_LABELLED = ContextOptions(header=lambda passage: source_label(passage.source or ""))


def _numbers(first: int, last: int) -> str:
    return f"chunk {first + 1}" if first == last else f"chunks {first + 1} to {last + 1}"


def _note(ordered: _Ordered, low: int, high: int, first: int, last: int) -> str:
    """Which chunks were read, which did not fit, and why the order is uncertain."""
    parts = [f"{_numbers(low, high).capitalize()} of {len(ordered.chunks)} of {ordered.label}"]
    left = [_numbers(*rows) for rows in ((first, low - 1), (high + 1, last)) if rows[0] <= rows[1]]
    if left:
        parts.append(f"no room for {' and '.join(left)}: continue there")
    return f"({'; '.join(filter(None, [*parts, ordered.doubt]))})"


def _note_of_hits(found: Sequence[tuple[_Ordered, int]], number: int, hits: str, unsearched: str) -> str:
    """Where the first chunks with hits are, how many more there are, and what was not searched."""
    parts = []
    for ordered, group in groupby(found[:number], key=lambda one: one[0]):
        rows = [str(row + 1) for _, row in group]
        doubt = "" if ordered.known and not ordered.doubt else " (the order is uncertain)"
        parts.append(
            f"chunk{'s' * (len(rows) > 1)} {', '.join(rows)} of {len(ordered.chunks)} of {ordered.label}{doubt}"
        )
    if left := len(found) - number:
        parts.append(f"{counted(left, 'more chunk')} not shown: name a source, or use a longer pattern")
    return f"({hits}: {'; '.join(filter(None, [*parts, unsearched]))})"


def _line(entry: OutlineEntry, depth: int, sums: Sequence[int]) -> str:
    tokens = counted(sums[entry.last + 1] - sums[entry.first], "token")
    return f"{'  ' * depth}- {entry.title}: {_numbers(entry.first, entry.last)}, {tokens}"
