"""Reading the sources of a store in order: around a passage, a range of chunks, and what a source consists of."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, islice, pairwise
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
from oprag.positions.insertion_order import ListedSource, StoredChunk, places_in_store
from oprag.positions.ladder import page_of
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
_LONGEST_TITLE = 100  # characters of a heading
_MOST_LINES = 60  # lines of an outline
_MOST_PARTS = 10  # parts of a source that has no headings and no pages
_SUGGESTIONS = 3
_MOST_COMPARED = 1_000  # names, which take about a millisecond each
_ALIKE = 0.5
_MOST_PLACES = 64  # where the text that two chunks share may begin
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
_LEVEL_FIELD = re.compile(r"(?:header|heading|h)[ _]?([1-6])", re.IGNORECASE)
_SECTION_FIELDS = ("section", "section_title", "heading", "chapter", "title")
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"[ ]{0,3}(?:```+|~~~+)[ \t]*(\S*)")
# Files in which a line that begins with "#" is a comment.
_COMMENTED = (
    ".py",
    ".pyi",
    ".sh",
    ".rb",
    ".pl",
    ".r",
    ".jl",
    ".yaml",
    ".yml",
    ".toml",
    ".ini",
    ".cfg",
    ".conf",
    ".env",
)


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
        sections = _sections(chunks, ordered.source)
        levels = sorted({section.level for section in sections})
        for deepest in reversed(levels):
            shown = [section for section in sections if section.level <= deepest]
            lines = [_line(section, levels.index(section.level), sums) for section in shown]
            if len(lines) <= _MOST_LINES and self._count("\n".join([head, *lines])) <= self._budget:
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
        kept = list(lines[: _MOST_LINES + 1])
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


class _Section(NamedTuple):
    """A part of a source: its rows, first and last."""

    level: int
    title: str
    first: int
    last: int


class _Start(NamedTuple):
    """Where a section begins: in a row, and whether text of the section before is in that row, too."""

    level: int
    title: str
    row: int
    inside: bool = False


def _label(name: str) -> str:
    """The name of a source as a model reads it: one line, without what would be read as a number of a passage."""
    return without_markers(shortened(printable(one_line(name)), _LONGEST_LABEL))


def _title(text: str) -> str:
    return without_markers(shortened(printable(one_line(text)), _LONGEST_TITLE))


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


def _line(section: _Section, depth: int, sums: Sequence[int]) -> str:
    tokens = counted(sums[section.last + 1] - sums[section.first], "token")
    return f"{'  ' * depth}- {section.title}: {_numbers(section.first, section.last)}, {tokens}"


def _sections(chunks: Sequence[Chunk], source: str) -> list[_Section]:
    """The sections of a source by the first means that finds several."""
    by_text = [] if source.lower().endswith(_COMMENTED) else _headings_in_text(chunks)
    for starts in (_headings_in_metadata(chunks), by_text, _section_names(chunks)):
        if len(starts) > 1:
            return _between(starts, len(chunks))
    pages = _pages(chunks)
    return pages if len(pages) > 1 else _equal_parts(chunks)


def _between(starts: Sequence[_Start], total: int) -> list[_Section]:
    """Each section from its start to the next one that is not below it."""
    sections = []
    if starts[0].row > 0 or starts[0].inside:
        last = starts[0].row if starts[0].inside else starts[0].row - 1
        sections.append(_Section(min(start.level for start in starts), "(before the first heading)", 0, last))
    for number, start in enumerate(starts):
        after = next((other for other in starts[number + 1 :] if other.level <= start.level), None)
        last = total - 1 if after is None else after.row - (not after.inside)
        sections.append(_Section(start.level, start.title, start.row, max(start.row, last)))
    return sections


def _headings_in_metadata(chunks: Sequence[Chunk]) -> list[_Start]:
    """The headings that splitters of Markdown and HTML write, such as "Header 1"."""
    starts: list[_Start] = []
    before: list[str] = [""] * 6
    for row, chunk in enumerate(chunks):
        path = [""] * 6
        for name, value in chunk.metadata.items():
            if isinstance(value, str) and (match := _LEVEL_FIELD.fullmatch(str(name))):
                path[int(match[1]) - 1] = value
        for level, heading in enumerate(path):
            if heading and path[: level + 1] != before[: level + 1]:
                starts.append(_Start(level, _title(heading), row))
        before = path
    return starts


def _headings_in_text(chunks: Sequence[Chunk]) -> list[_Start]:
    """The headings of Markdown in the texts; those that two chunks share are there once."""
    starts: list[_Start] = []
    before: list[tuple[int, str]] = []
    text, in_code = "", False
    states: list[bool] = []  # of each line of the chunk before
    for row, chunk in enumerate(chunks):
        if shared := _shared(text, chunk.text):
            # A fence that two chunks share is there once.
            in_code = states[-len(text[-shared:].splitlines())]
        text, states = chunk.text, []
        found: list[_Start] = []
        any_text = False
        for line in text.splitlines():
            states.append(in_code)
            if fence := _FENCE.match(line):
                # One with the name of a language opens.
                in_code = bool(fence[1]) or not in_code
            elif not in_code and (match := _HEADING.fullmatch(line)):
                found.append(_Start(len(match[1]), _title(match[2].rstrip(" \t#")), row, any_text))
            any_text = any_text or bool(line.strip())
        names = [(start.level, start.title) for start in found]
        longest = min(len(names), len(before))
        again = next((length for length in range(longest, 0, -1) if before[-length:] == names[:length]), 0)
        starts += found[again:]
        before = names
    return starts


def _shared(before: str, after: str) -> int:
    """The number of characters that one text ends with and the next begins with, if they are a line or more."""
    line = after.partition("\n")[0]
    at = max(0, len(before) - len(after)) - 1
    for _ in range(_MOST_PLACES):
        at = before.find(line, at + 1)
        if at < 0:
            break
        if after.startswith(before[at:]):
            return len(before) - at
    return 0


def _section_names(chunks: Sequence[Chunk]) -> list[_Start]:
    """The sections that one metadata key names."""
    names = {str(name).lower(): name for chunk in chunks for name in chunk.metadata}
    for field in _SECTION_FIELDS:
        values = [chunk.metadata.get(names.get(field, field)) for chunk in chunks]
        starts = [
            _Start(1, _title(value), row)
            for row, value in enumerate(values)
            if isinstance(value, str) and value.strip() and (row == 0 or values[row - 1] != value)
        ]
        if len(starts) > 1:
            return starts
    return []


def _pages(chunks: Sequence[Chunk]) -> list[_Section]:
    """The pages; several in a line where there are many."""
    if any(page_of(chunk) is None for chunk in chunks):
        return []
    runs = [(page, list(rows)) for page, rows in groupby(range(len(chunks)), lambda row: page_of(chunks[row]))]
    size = -(-len(runs) // _MOST_LINES)
    sections = []
    for start in range(0, len(runs), size):
        some = runs[start : start + size]
        first, last = some[0][0], some[-1][0]
        title = f"page {first}" if first == last else f"pages {first} to {last}"
        sections.append(_Section(0, _title(title), some[0][1][0], some[-1][1][-1]))
    return sections


def _equal_parts(chunks: Sequence[Chunk]) -> list[_Section]:
    """Parts of about as many chunks each, by the words that they begin with."""
    number = min(_MOST_PARTS, len(chunks))
    edges = [len(chunks) * part // number for part in range(number + 1)]
    return [_Section(0, f"begins “{_title(chunks[first].text)}”", first, after - 1) for first, after in pairwise(edges)]
