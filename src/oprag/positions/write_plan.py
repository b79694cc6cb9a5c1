"""Finds the positions that `write_positions` adds to the metadata in a store, and reports them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oprag.chunk import Chunk, PositionKind, changed, counted
from oprag.masking import clean, describe, masked_error, safe, shown
from oprag.positions.fields import BY_STORE_NUMBERING, NUMBERING_FIELD, STAMP_FIELD
from oprag.positions.placing import place
from oprag.positions.readings import LOCATED, TIES_BY_STORE, page_of, stamped_by_store
from oprag.positions.source_order import (
    BY_STORE,
    CONFLICTING_OFFSETS,
    MISSING,
    SHARED_POSITION,
    UNLINKED_RUNS,
    Listing,
    SourceOrder,
    order_of,
)
from oprag.positions.source_text import SourceText
from oprag.positions.sources import SourceKey, warn_about_key
from oprag.positions.stamp import numbering_of
from oprag.text_table import html_table, table

__all__ = ["WrittenPositions", "WrittenSource", "plan_positions"]

_HEAD = ("source", "chunks", "written", "position from", "note")
_NOTES = {
    **dict.fromkeys(BY_STORE, "overlapping texts confirm insertion order only in part"),
    SHARED_POSITION: "the order of chunks that share a page or another number is unknown",
    UNLINKED_RUNS: "its chunks are linked in several runs whose relative order is unknown",
}
_NOT_TRUSTED = "nothing is written without its text (read_source=...) or trust_store_order=True"
_MAX_ROWS = 40  # sources in a table
_NAME_WIDTH = 80  # characters of a source name in a table
_NAME_IN_JSON = 1_000  # characters of a source name


class WrittenSource(NamedTuple):
    """The result of `write_positions` for one source.

    Attributes:
        source: Name of the source; None for chunks that do not name one.
        chunks: Number of its chunks in the store.
        written: Number of chunks whose position was added or changed.
        kind: How the positions are known.
        field: The origin of the positions, in words.
        note: Why some or all positions were not written, and what is uncertain; empty otherwise.
    """

    source: str | None
    chunks: int
    written: int
    kind: PositionKind
    field: str
    note: str = ""


@dataclass(frozen=True)
class WrittenPositions:
    """The result of `write_positions`, or of a dry run; prints as a table.

    Attributes:
        sources: The results for sources whose order was uncertain.
        chunks: Number of chunks in the store.
        known: Number of other sources, which need no positions: their order is known already, or they have one chunk.
        dry_run: Whether this is a dry run, which writes nothing.
        added: The metadata that were added, by chunk id.
    """

    sources: tuple[WrittenSource, ...]
    chunks: int
    known: int
    dry_run: bool
    added: dict[str, dict[str, object]] = field(repr=False)

    @property
    def written(self) -> int:
        """Number of chunks whose position was added or changed."""
        return sum(one.written for one in self.sources)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serializable values, with API keys and passwords masked."""
        return {
            "chunks": self.chunks,
            "written": self.written,
            "known_sources": self.known,
            "dry_run": self.dry_run,
            "sources": [
                {
                    **one._asdict(),
                    "source": one.source and shown(one.source, _NAME_IN_JSON),
                    "kind": one.kind.name.lower(),
                    "note": clean(one.note),
                }
                for one in self.sources
            ],
        }

    def __str__(self) -> str:
        return "\n".join([self._summary, *(["", *table(_HEAD, self._rows())] if self.sources else []), *self._more])

    def _repr_html_(self) -> str:
        return html_table("; ".join([self._summary, *self._more]), _HEAD, self._rows())

    @property
    def _summary(self) -> str:
        verb = "would be written" if self.dry_run else "were written"
        known = ""
        if self.known:
            known = f"; {counted(self.known, 'other source')} {'needs' if self.known == 1 else 'need'} no positions"
        return f"positions of {self.written:,} of {counted(self.chunks, 'chunk')} {verb}{known}"

    @property
    def _more(self) -> list[str]:
        more = len(self.sources) - _MAX_ROWS
        return [f"and {counted(more, 'more source')}"] if more > 0 else []

    def _rows(self) -> list[list[str]]:
        """Return a row for each source, up to a maximum; sources with a note come first."""
        rows = sorted(self.sources, key=lambda one: not one.note)
        return [
            [
                "(not named)" if one.source is None else safe(shown(one.source, _NAME_WIDTH)),
                f"{one.chunks:,}",
                f"{one.written:,}",
                one.field or "-",
                clean(one.note),
            ]
            for one in rows[:_MAX_ROWS]
        ]


def plan_positions(
    chunks: Sequence[Chunk],
    store: str,
    *,
    in_insertion_order: bool,
    read_source: Callable[[str], str] | None,
    trust_store_order: bool,
    source_key: SourceKey | None,
    dry_run: bool,
) -> WrittenPositions:
    """Find the positions of chunks whose order the metadata do not tell.

    Args:
        chunks: All chunks of a store, with their ids; their ranks are their indexes in this list.
        store: The name of the store, for the report.
        in_insertion_order: Whether the chunks are in insertion order.
        read_source: Reads the text of a source.
        trust_store_order: Whether to write insertion order where overlapping texts do not confirm it.
        source_key: See `ContextOptions.source_key`.
        dry_run: Whether the report is about a dry run.
    """
    warn_about_key("source_key", source_key, chunks)
    # Ignore links: they can order all chunks of a source, but not always the subset that a query retrieves.
    placed = place(list(map(_without_links, chunks)), source_key, None)
    finder = _Finder(store, read_source, in_sequence=in_insertion_order, trusted=trust_store_order)
    times = Counter(chunk.id for chunk in chunks)
    sources: list[WrittenSource] = []
    added: dict[str, dict[str, object]] = {}
    unnamed = sum(report.source is None for report in placed.sources)
    if unnamed:
        note = "these chunks do not name their source; name it with source_key=..."
        sources.append(WrittenSource(None, unnamed, 0, PositionKind.NONE, "", note))
    known = 0
    for (name, group), order in zip(placed.groups.items(), placed.orders.values(), strict=True):
        if isinstance(name, int):
            continue
        doubted = order.doubts_among(range(len(group)))
        if len(group) < 2 or not (doubted or (read_source is not None and stamped_by_store(group))):
            known += 1
            continue
        decided, positions, notes = finder.find([changed(chunks[one.rank], source=name) for one in group])
        repeated = sum(times[chunk.id] > 1 for chunk in group)
        if repeated:
            notes.append(f"{counted(repeated, 'chunk')} with a duplicate id, so nothing is written")
            positions = {}
        more = {
            chunk.id: positions[chunk.rank]
            for chunk in group
            if chunk.id is not None and _lacks(chunk, positions.get(chunk.rank))
        }
        added |= more
        note = clean("; ".join(notes))
        sources.append(WrittenSource(name, len(group), len(more), decided.kind, decided.field, note))
    return WrittenPositions(tuple(sources), len(chunks), known, dry_run, added)


def _without_links(chunk: Chunk) -> Chunk:
    linked = chunk.previous_id or chunk.next_id or chunk.parent_id or chunk.child_ids
    return changed(chunk, previous_id=None, next_id=None, parent_id=None, child_ids=()) if linked else chunk


class _Finder:
    """Finds the positions to write for the chunks of a source.

    Args:
        store: The name of the store.
        read_source: As in `plan_positions`.
        in_sequence: Whether the chunks are in insertion order.
        trusted: Whether to write an order that nothing confirms.
    """

    def __init__(
        self, store: str, read_source: Callable[[str], str] | None, *, in_sequence: bool, trusted: bool
    ) -> None:
        self._store = store
        self._read_source = read_source
        self._in_sequence = in_sequence
        self._trusted = trusted

    def find(self, group: Sequence[Chunk]) -> tuple[SourceOrder, dict[int, dict[str, object]], list[str]]:
        """Return the order of all chunks of a source, the metadata to write by rank, and notes on what is uncertain."""
        notes: list[str] = []
        text = self._text(group[0].source or "", notes)
        absent = 0 if text is None else sum(not text.places(chunk.text) for chunk in group)
        # If the text lacks chunks, it is another version, or the chunks are of several versions.
        in_sequence = self._in_sequence and (not absent or self._trusted)
        order = order_of(Listing(group, in_sequence, complete=True, store=self._store), None, text)
        if text is not None:
            notes += _about_text(group, text, order, absent)
        left = self._left_out(group, order)
        missing = order.keys.count(None)
        if missing:
            notes.append(f"the position of {counted(missing, 'chunk')} is unknown")
        causes = [
            cause for cause in order.doubts_among(range(len(group))) if cause not in (MISSING, CONFLICTING_OFFSETS)
        ]
        notes += dict.fromkeys(_NOTES.get(cause, cause) for cause in causes[:1])
        if len(left) == len(group):
            trust = causes and causes[0] in BY_STORE and not self._trusted
            notes.append(_NOT_TRUSTED if trust else "nothing is written")
            return order, {}, notes
        if any(STAMP_FIELD in group[index].metadata for index in left):
            # Numbers from two stamping calls are not comparable.
            notes.append(f"some of these already have a {STAMP_FIELD}, so nothing is written")
            return order, {}, notes
        return order, _numbered(group, order, left), notes

    def _text(self, source: str, notes: list[str]) -> SourceText | None:
        if self._read_source is None:
            return None
        try:
            return SourceText(self._read_source(source))
        except Exception as error:  # noqa: BLE001 - the caller's function can raise anything
            notes.append(f"its text cannot be read: {masked_error(error)}")
            return None

    def _left_out(self, group: Sequence[Chunk], order: SourceOrder) -> set[int]:
        """Return the chunks for which no position is written."""
        missing = {index for index, key in enumerate(order.keys) if key is None}
        trusted = {
            index
            for index, doubts in order.uncertain.items()
            if self._trusted and all(doubt.cause in BY_STORE for doubt in doubts)
        }
        return missing | (order.unsure_among(range(len(group))) - trusted)


def _about_text(group: Sequence[Chunk], text: SourceText, order: SourceOrder, absent: int) -> Iterator[str]:
    """Yield notes on chunks that cannot be located in the text of their source for certain."""
    left = [chunk for chunk, span in zip(group, order.spans, strict=True) if span is None]
    ambiguous = [chunk for chunk in left if text.places(chunk.text)]
    if absent:
        yield f"{counted(absent, 'chunk')} not found in its text (another version?)"
    if ambiguous:
        first = f"{describe(ambiguous[0].text)}, id {describe(ambiguous[0].id)}"
        which = f"{first}): add its" if len(ambiguous) == 1 else f"such as {first}): add their"
        yield f"{counted(len(ambiguous), 'chunk')} found at several places in its text ({which} start_index"


def _numbered(group: Sequence[Chunk], order: SourceOrder, left: Collection[int]) -> dict[int, dict[str, object]]:
    """Return the position metadata of each chunk that is not left out, by rank."""
    known = [(key, index) for index, key in enumerate(order.keys) if key is not None and index not in left]
    # Duplicates (same position and text) share a number, as retrieval treats them as one chunk.
    numbers: dict[tuple[Any, str], int] = {}
    for key, index in sorted(known):
        numbers.setdefault((key, group[index].text), len(numbers))
    texts = [text for _, text in numbers]
    by_store = order.kind is PositionKind.STORE or order.field.endswith(TIES_BY_STORE) or stamped_by_store(group)
    by_store = by_store and not order.field.endswith(LOCATED)
    numbering = numbering_of(texts, BY_STORE_NUMBERING) if by_store else numbering_of(texts)
    # Retrieval reads an offset next to a page as relative to the page, whose start in the text is unknown.
    in_source = order.field.endswith(LOCATED) and all(page_of(chunk) is None for chunk in group)
    positions: dict[int, dict[str, object]] = {}
    for key, index in known:
        position: dict[str, object] = {STAMP_FIELD: numbers[key, group[index].text], NUMBERING_FIELD: numbering}
        span = order.spans[index]
        if in_source and span is not None:
            position |= {"start_index": span.start, "end_index": span.end}
        positions[group[index].rank] = position
    return positions


def _lacks(chunk: Chunk, position: Mapping[str, object] | None) -> bool:
    """Return whether writing this position would change the chunk's metadata."""
    return position is not None and not all(_is(chunk.metadata.get(name), value) for name, value in position.items())


def _is(old: Any, new: Any) -> bool:
    """Compare a metadata value of any type with a new value."""
    return isinstance(old, int | float | str) and not isinstance(old, bool) and bool(old == new)
