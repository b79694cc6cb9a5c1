"""Finds the positions that `write_positions` adds to the metadata in a store, and reports them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from oprag.chunk import Chunk, PositionKind, Span, StorePlace, changed, counted
from oprag.masking import clean, describe, masked_error, safe, shown
from oprag.positions.fields import BY_STORE_NUMBERING, NUMBERING_FIELD, PAGE_FIELDS, STAMP_FIELD
from oprag.positions.insertion_order import places_in_store
from oprag.positions.ladder import LOCATED, TIES_BY_STORE, is_confirmed, stamped_by_store, stated_span
from oprag.positions.locate import Place, SourceText
from oprag.positions.placing import Placed, SourceReport, place, without_order
from oprag.positions.sources import SourceKey, warn_about_key
from oprag.positions.stamp import numbering_of
from oprag.text_table import html_table, table

__all__ = ["WrittenPositions", "WrittenSource", "plan_positions"]

_HEAD = ("source", "chunks", "written", "position from", "note")
_START, _END = "start_index", "end_index"
_OURS = (STAMP_FIELD, NUMBERING_FIELD, _START, _END)
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
    uncertain = {group[0].source for group in without_order(placed, by_store=read_source is not None)}
    finder = _Finder(chunks, store if in_insertion_order else "", read_source, source_key, trusted=trust_store_order)
    times = Counter(chunk.id for chunk in chunks)
    sources: list[WrittenSource] = []
    added: dict[str, dict[str, object]] = {}
    unnamed = sum(report.source is None for report in placed.sources)
    if unnamed:
        note = "these chunks do not name their source; name it with source_key=..."
        sources.append(WrittenSource(None, unnamed, 0, PositionKind.NONE, "", note))
    known = 0
    for report, group in zip(placed.sources, placed.groups.values(), strict=True):
        if report.source is None:
            continue
        if report.source not in uncertain:
            known += 1
            continue
        found, doubts = finder.found(group)
        repeated = sum(times[chunk.id] > 1 for chunk in group)
        if repeated:
            doubts.append(f"{counted(repeated, 'chunk')} with a duplicate id, so nothing is written")
        positions = {} if repeated else _positions(found, doubts, trusted=trust_store_order)
        more = {
            chunk.id: positions[chunk.rank]
            for chunk in group
            if chunk.id is not None and _lacks(chunk, positions.get(chunk.rank))
        }
        doubts += _replaced(group, positions)
        added |= more
        how = found.sources[0]
        note = clean("; ".join(doubts))
        sources.append(WrittenSource(report.source, len(group), len(more), how.kind, how.field, note))
    return WrittenPositions(tuple(sources), len(chunks), known, dry_run, added)


def _without_links(chunk: Chunk) -> Chunk:
    linked = chunk.previous_id or chunk.next_id or chunk.parent_id or chunk.child_ids
    return changed(chunk, previous_id=None, next_id=None, parent_id=None, child_ids=()) if linked else chunk


class _Finder:
    """Finds the order of a source from its metadata, its text and insertion order.

    Args:
        chunks: All chunks of the store, unchanged.
        store: The name of the store; empty if the chunks are not in insertion order.
        read_source: As in `plan_positions`.
        source_key: As in `plan_positions`.
        trusted: Whether to use insertion order even where the source text lacks some chunks.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        store: str,
        read_source: Callable[[str], str] | None,
        source_key: SourceKey | None,
        *,
        trusted: bool,
    ) -> None:
        self._chunks = chunks
        self._store = store
        self._read_source = read_source
        self._source_key = source_key
        self._trusted = trusted

    def found(self, group: Sequence[Chunk]) -> tuple[Placed, list[str]]:
        """Return the chunks of a source with their positions, and notes on what is uncertain.

        Args:
            group: The chunks, with positions from their metadata alone.
        """
        doubts: list[str] = []
        places: Sequence[StorePlace | None] = [None] * len(group)
        refuted = ""
        if self._store:
            in_sequence, refuted = places_in_store(group, self._store)
            places = places if refuted else in_sequence
        spans: Sequence[Span | None] = [None] * len(group)
        absent = 0
        if self._read_source is not None:
            spans, absent = _located(group, self._read_source, doubts, in_sequence=bool(self._store))
        if absent and not self._trusted:
            # The text is another version, or the chunks are of several versions.
            places = [None] * len(group)
        found = self._placed(group, spans, places)
        unconfirmed = bool(without_order(found)) or is_confirmed(found.chunks)
        if any(spans) and not self._trusted and _by_store(found.sources[0]) and unconfirmed:
            # Insertion order that no text confirms must not replace the places in the text, or block them. Metadata
            # that confirm it may be the stamps of an earlier call.
            found = self._placed(group, spans, [None] * len(group))
        if refuted and without_order(found):
            doubts.append(f"insertion order is not used: {refuted}")
        return found, doubts

    def _placed(
        self, group: Sequence[Chunk], spans: Sequence[Span | None], places: Sequence[StorePlace | None]
    ) -> Placed:
        located = [
            changed(self._chunks[chunk.rank], located=span, store_place=at)
            for chunk, span, at in zip(group, spans, places, strict=True)
        ]
        return place(located, self._source_key, None)


def _by_store(report: SourceReport) -> bool:
    """Return whether insertion order determines the order of a source, or that of chunks on the same page."""
    return report.kind is PositionKind.STORE or report.field.endswith(TIES_BY_STORE)


def _located(
    group: Sequence[Chunk], read_source: Callable[[str], str], doubts: list[str], *, in_sequence: bool
) -> tuple[list[Span | None], int]:
    """Locate the chunks of a source in its text; return their spans and the number of chunks not found."""
    try:
        text = SourceText(read_source(group[0].source or ""))
    except Exception as error:  # noqa: BLE001 - the caller's function can raise anything
        doubts.append(f"its text cannot be read: {masked_error(error)}")
        return [None] * len(group), 0
    text.learn(chunk.text for chunk in group)
    places = text.locate(group, in_sequence=in_sequence)
    left = [chunk for chunk, at in zip(group, places, strict=True) if at is None]
    ambiguous = [chunk for chunk in left if text.places(chunk.text)]
    absent = len(left) - len(ambiguous)
    if absent:
        doubts.append(f"{counted(absent, 'chunk')} not found in its text (another version?)")
    if ambiguous:
        first = f"{describe(ambiguous[0].text)}, id {describe(ambiguous[0].id)}"
        which = f"{first}): add its" if len(ambiguous) == 1 else f"such as {first}): add their"
        doubts.append(f"{counted(len(ambiguous), 'chunk')} found at several places in its text ({which} start_index")
    alike = _interchangeable(group, places)
    if alike:
        doubts.append(f"{counted(alike, 'chunk')} with equal texts may be swapped")
    return [None if at is None else Span(*at) for at in places], absent


def _interchangeable(group: Sequence[Chunk], places: Sequence[tuple[int, int] | None]) -> int:
    """Count chunks that may be swapped: equal texts at several places, with different metadata."""
    found = [at for at in places if at is not None]
    if all(before <= after for before, after in pairwise(found)):
        # The places rise with insertion order, so each chunk has its own place.
        return 0
    alike: dict[str, list[tuple[tuple[int, int], str]]] = {}
    for chunk, at in zip(group, places, strict=True):
        by_page = chunk.position and chunk.position.kind is PositionKind.PAGE
        if at is not None and not by_page:
            alike.setdefault(chunk.text, []).append((at, _others(chunk)))
    return sum(len(some) for some in alike.values() if all(len(set(parts)) > 1 for parts in zip(*some, strict=True)))


def _others(chunk: Chunk) -> str:
    """Return the metadata that `write_positions` does not write."""
    return repr([(name, value) for name, value in chunk.metadata.items() if name not in _OURS])


def _positions(found: Placed, doubts: list[str], *, trusted: bool) -> dict[int, dict[str, object]]:
    """Return the position metadata to write for the chunks of a source, by rank; empty if positions are unknown.

    Args:
        found: The chunks of the source.
        doubts: Receives notes on what is uncertain.
        trusted: Whether insertion order needs no confirmation by texts.
    """
    (report,) = found.sources
    by_store = _by_store(report)
    if report.missing:
        doubts.append(f"the position of {counted(report.missing, 'chunk')} is unknown")
    if by_store and (report.missing or without_order(found)):
        doubts.append("overlapping texts confirm insertion order only in part")
    tied = _tied(found)
    why = _why_nothing_is_written(found, tied, by_store=by_store and not trusted)
    if why is not None:
        doubts += [why] if why else []
        return {}
    known = [(chunk.position.key, chunk) for chunk in found.chunks if chunk.position and chunk.position.known]
    if tied:
        doubts.append(f"{counted(len(tied), 'chunk')} on the same page as one that cannot be located")
        known = [(key, chunk) for key, chunk in known if chunk.rank not in tied]
    # Duplicates (same position and text) share a number, as retrieval treats them as one chunk.
    numbers: dict[tuple[Any, str], int] = {}
    for key, chunk in sorted(known, key=itemgetter(0)):
        numbers.setdefault((key, chunk.text), len(numbers))
    texts = [text for _, text in numbers]
    numbering = numbering_of(texts, BY_STORE_NUMBERING) if by_store else numbering_of(texts)
    offsets = _offsets(found.chunks)
    positions: dict[int, dict[str, object]] = {}
    for key, chunk in known:
        positions[chunk.rank] = {STAMP_FIELD: numbers[key, chunk.text], NUMBERING_FIELD: numbering}
        if chunk.rank in offsets:
            start, end = offsets[chunk.rank]
            positions[chunk.rank] |= {_START: start, _END: end}
    return positions


def _offsets(chunks: Sequence[Chunk]) -> dict[int, Place]:
    """Return the offsets to write, by rank: in the source, or in the page if the chunks have page numbers.

    Retrieval reads an offset next to a page number as relative to the page. Pages start where their chunks' own offsets
    say so, else with their first chunk; leading white space, which splitters strip, is then not counted.
    """
    places = {chunk.rank: (chunk.located.start, chunk.located.end) for chunk in chunks if chunk.located is not None}
    if not any(field in chunk.metadata for chunk in chunks for field in PAGE_FIELDS):
        return places
    pages: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        pages.setdefault(repr([chunk.metadata.get(field) for field in PAGE_FIELDS]), []).append(chunk)
    located = [[(one, places[one.rank]) for one in group if one.rank in places] for group in pages.values()]
    extents = sorted((min(at[0] for _, at in here), max(at[1] for _, at in here)) for here in located if here)
    if repr([None] * len(PAGE_FIELDS)) in pages or any(after[0] < before[1] for before, after in pairwise(extents)):
        return {}
    offsets: dict[int, Place] = {}
    for here in located:
        # The span of a placed chunk is the located one, so read its metadata alone.
        stated = [(at, stated_span(changed(chunk, span=None))) for chunk, at in here]
        origins = {at[0] - own.start for at, own in stated if own is not None}
        first = min((at[0] for _, at in here), default=0)
        origin = origins.pop() if len(origins) == 1 and min(origins) <= first else first
        offsets |= {chunk.rank: (start - origin, end - origin) for chunk, (start, end) in here}
    return offsets


def _why_nothing_is_written(found: Placed, tied: Collection[int], *, by_store: bool) -> str | None:
    """Return why positions cannot be written (empty if a note exists already or is not needed); None if they can.

    Args:
        found: The chunks of a source.
        tied: The ranks of those whose order on their page is unknown.
        by_store: Whether the positions come from insertion order, which needs confirmation.
    """
    (report,) = found.sources
    known = [chunk for chunk in found.chunks if chunk.position and chunk.position.known]
    unknown = [chunk for chunk in found.chunks if not (chunk.position and chunk.position.known)]
    # Numbers stamped from insertion order by an earlier run; the source text did not improve on them.
    ours = stamped_by_store(found.chunks)
    why: str | None = None
    if report.kind is PositionKind.LINKS and report.runs > 1:
        why = "its chunks are linked in several runs whose relative order is unknown, so nothing is written"
    elif (report.kind is PositionKind.STAMPED and ours) or (
        # Most chunks have positions in their metadata; the note about missing ones says enough.
        report.missing and report.kind < PositionKind.LINKS and report.field != LOCATED
    ):
        why = ""
    elif report.missing and known and not ours and any(STAMP_FIELD in one.metadata for one in unknown):
        # Numbers from two stamping calls are not comparable.
        why = f"some of these already have a {STAMP_FIELD}, so nothing is written"
    elif tied and (len(tied) == len(known) or ", " not in report.field):
        why = "the order of chunks that share a page or another number is unknown, so nothing is written"
    elif by_store and (report.missing or without_order(found)):
        why = "nothing is written without its text (read_source=...) or trust_store_order=True"
    return why


def _tied(found: Placed) -> set[int]:
    """Return the ranks of chunks that share a page or another number with a different chunk, and nothing finer."""
    pages: dict[Any, list[Chunk]] = {}
    for chunk in found.chunks:
        if chunk.position is not None and chunk.position.kind is PositionKind.PAGE:
            pages.setdefault(chunk.position.key, []).append(chunk)
    return {one.rank for page in pages.values() if len({one.text for one in page}) > 1 for one in page}


def _lacks(chunk: Chunk, position: Mapping[str, object] | None) -> bool:
    """Return whether writing this position would change the chunk's metadata."""
    return position is not None and not all(_is(chunk.metadata.get(name), value) for name, value in position.items())


def _is(old: Any, new: Any) -> bool:
    """Compare a metadata value of any type with a new value."""
    return isinstance(old, int | float | str) and not isinstance(old, bool) and bool(old == new)


def _replaced(group: Sequence[Chunk], positions: Mapping[int, Mapping[str, object]]) -> Iterable[str]:
    """Yield a note on the metadata keys of a source whose values are replaced, if any."""
    names = [
        name
        for chunk in group
        for name, value in positions.get(chunk.rank, {}).items()
        if chunk.metadata.get(name) is not None and not _is(chunk.metadata[name], value)
    ]
    if names:
        yield f"replaces its {' and '.join(sorted(set(names)))}"
