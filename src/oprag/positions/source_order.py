"""The order of a source: the one decision, made by `order_of` from all that is known of its chunks.

Evidence is weighed, not vetoed: metadata, offsets, links, overlapping texts, the text of the source and the sequence in
which the store received the chunks are witnesses, and what two of them tell is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from oprag.chunk import UNKNOWN_POSITION, Chunk, Place, Position, PositionKind, Span, Uncertain
from oprag.positions.copies import Copies, copies_of
from oprag.positions.fields import LABEL_FIELD, PAGE_FIELDS, STAMP_FIELD
from oprag.positions.overlaps import apart, ends_as_it_begins, overlap_of, overlaps_of, successors
from oprag.positions.readings import (
    FRAME_FIELDS,
    LOCATED,
    TIES_BY_STORE,
    Facts,
    PositionKey,
    Reading,
    by_position_key,
    facts_of,
    ignores_offsets,
    link_reading,
    located_reading,
    numberings,
    offset_readings,
    page_readings,
    readings_within_pages,
    shared,
    stamp_readings,
    stamped_by_store,
)
from oprag.positions.source_text import SourceText
from oprag.positions.values import Key
from oprag.positions.witnesses import agreed_order, confirmed_order

__all__ = [
    "ADDED_AGAIN",
    "BY_STORE",
    "CONFLICTING_OFFSETS",
    "INSERTION_ORDER_ONLY",
    "LABELS_ALONE",
    "MISSING",
    "RESTARTED",
    "SHARED_BY_STORE",
    "SHARED_POSITION",
    "TORN_APART",
    "UNLINKED_RUNS",
    "Certainty",
    "Listing",
    "SourceOrder",
    "is_strong",
    "order_of",
    "stated_pages",
]

Certainty = Literal["known", "assumed", "unknown"]

# Causes of doubt, as the text of the message.
RESTARTED = "chunk_index was stamped in several calls, each starting at 0, so it does not tell the order of the source"
UNLINKED_RUNS = "the chunks of a source are linked in several runs of unknown order, so the best-ranked run comes first"
INSERTION_ORDER_ONLY = (
    "the chunks of a source are in the order in which they were added to the store, which is wrong if some were added "
    "later"
)
SHARED_BY_STORE = (
    "chunks of a source that share a page or number are in the order of the store, which is wrong if some were added "
    "later"
)
MISSING = "chunks of a source have no position, so their order is unknown"
LABELS_ALONE = "page labels alone tell the order of a source, which is wrong if they start again or change style"
SHARED_POSITION = "chunks of a source share a page or another number, so they are ordered by retrieval rank there"
CONFLICTING_OFFSETS = (
    "the character offsets of a source contradict each other, so they are ignored and the order is uncertain"
)
ADDED_AGAIN = "the source seems to have been added to the store more than once"
TORN_APART = "chunks that overlap were added to the store apart from each other"
BY_STORE = frozenset({INSERTION_ORDER_ONLY, SHARED_BY_STORE})
"""Causes of doubt where only the order of the store tells the order."""
_ASSUMED = BY_STORE | {LABELS_ALONE}
_NOTHING: Mapping[int, tuple[Uncertain, ...]] = MappingProxyType({})
_EXACT = (PositionKind.STAMPED, PositionKind.PAGE_OFFSET, PositionKind.OFFSET)


class Listing(NamedTuple):
    """The chunks of one source.

    Attributes:
        chunks: The chunks.
        in_sequence: Whether they are in the sequence in which the store received them.
        complete: Whether these are all chunks of the source that the search can find, not only those it found.
        store: The name of the store, for reports.
    """

    chunks: Sequence[Chunk]
    in_sequence: bool = False
    complete: bool = False
    store: str = ""


class SourceOrder(NamedTuple):
    """The order of the chunks of one source.

    Attributes:
        chunks: The chunks of the listing.
        kind: How their positions are known.
        field: What the positions were read from.
        keys: The sort key of each chunk; None where its place is unknown.
        spans: The character offsets of each chunk in the source or its page; None where they are unknown.
        runs: The offsets of each chunk in its run of overlapping chunks, with the run as the page; empty if no texts
            were compared.
        uncertain: By the index of a chunk, what is uncertain about its place.
        basis: How certain the order is where no chunk is uncertain.
        complete: Whether these are all chunks of the source.
    """

    chunks: Sequence[Chunk]
    kind: PositionKind
    field: str
    keys: Sequence[Key | None]
    spans: Sequence[Span | None]
    runs: Sequence[Span | None] = ()
    uncertain: Mapping[int, tuple[Uncertain, ...]] = _NOTHING
    basis: Certainty = "known"
    complete: bool = False

    @property
    def positions(self) -> list[Position]:
        """The position of each chunk."""
        kind, name = self.kind, self.field
        return [UNKNOWN_POSITION if key is None else Position(key, kind, name) for key in self.keys]

    @property
    def places(self) -> list[Place]:
        """The place of each chunk, which is kept with it where only a part of the source is in an answer."""
        runs = self.runs or [None] * len(self.chunks)
        # Copies share a number.
        distinct = sorted({key for key in self.keys if key is not None}) if self.complete else ()
        numbers: dict[Key | None, int] = {key: number for number, key in enumerate(distinct)}
        return [
            Place(
                *(key or (), self.kind, self.field, span, run, self.uncertain.get(index, ()), self.basis),
                -1 if index in self.uncertain else numbers.get(key, -1),
            )
            for index, (key, span, run) in enumerate(zip(self.keys, self.spans, runs, strict=True))
        ]

    @property
    def certainty(self) -> Certainty:
        """How certain the order of all chunks is."""
        return self.certainty_among(range(len(self.chunks)))

    def certainty_among(self, indices: Collection[int]) -> Certainty:
        """How certain the order of some of the chunks is.

        Args:
            indices: Their indices in the listing.
        """
        doubts = self.doubts_among(indices)
        if any(doubt not in _ASSUMED for doubt in doubts):
            return "unknown"
        return "assumed" if doubts else self.basis

    def doubts_among(self, indices: Collection[int]) -> list[str]:
        """The causes of doubt about the order of some of the chunks.

        Args:
            indices: Their indices in the listing.
        """
        return list(dict.fromkeys(cause for cause, _ in self._doubts_among(indices)))

    def unsure_among(self, indices: Collection[int]) -> set[int]:
        """The chunks whose doubts concern the order of these chunks.

        Args:
            indices: Their indices in the listing.
        """
        return {index for _, concerned in self._doubts_among(indices) for index in concerned}

    def _doubts_among(self, indices: Collection[int]) -> Iterator[tuple[str, list[int]]]:
        """Yield each cause of doubt with the chunks that it concerns."""
        if len(indices) < 2 or not self.uncertain:
            return
        members: dict[tuple[str, str], dict[Any, list[int]]] = {}
        for index in indices:
            for one in self.uncertain.get(index, ()):
                members.setdefault((one.cause, one.among), {}).setdefault(one.group, []).append(index)
        for (cause, among), groups in members.items():
            if concerned := _concerned(among, groups, self.chunks):
                yield cause, concerned

    @classmethod
    def of_places(cls, chunks: Sequence[Chunk], places: Sequence[Place]) -> SourceOrder:
        """The order of chunks whose places were decided before, from the whole source."""
        known = next((place for place in places if place.key), places[0])
        return cls(
            chunks,
            known.kind if known.key else PositionKind.NONE,
            known.field if known.key else "",
            [place.key or None for place in places],
            [place.span for place in places],
            [place.run for place in places],
            {index: place.uncertain for index, place in enumerate(places) if place.uncertain},
            known.basis,  # type: ignore[arg-type]
        )


def _concerned(among: str, groups: Mapping[Any, list[int]], chunks: Sequence[Chunk]) -> list[int]:
    """Return the chunks that a doubt concerns; see `Uncertain.among`."""
    everywhere = list(chain.from_iterable(groups.values()))
    if among == "alone":
        return everywhere
    if among == "across":
        return everywhere if len(groups) > 1 else []
    if among == "split":
        parts = Counter(group[0] for group in groups)
        return [index for group, indices in groups.items() if parts[group[0]] > 1 for index in indices]
    tied = (indices for indices in groups.values() if len({chunks[index].text for index in indices}) > 1)
    return list(chain.from_iterable(tied))


def order_of(listing: Listing, position_key: PositionKey | None = None, text: SourceText | None = None) -> SourceOrder:
    """Decide the order of the chunks of one source.

    Args:
        listing: The chunks.
        position_key: See `ContextOptions.position_key`; it is trusted.
        text: The text of the source, in which chunks of uncertain order are located.
    """
    chunks = listing.chunks
    facts = facts_of(chunks)
    if position_key is not None:
        reading = by_position_key(chunks, position_key)
        missing = {index: (Uncertain(MISSING, "alone"),) for index, key in enumerate(reading.keys) if key is None}
        return SourceOrder(chunks, *reading, facts.spans, uncertain=missing)
    located: Sequence[Span | None] = ()
    if text is not None:
        located = _located(facts, listing, text)
        facts = facts._replace(spans=list(located))
    chosen = _chosen(facts, located)
    if listing.in_sequence and chunks:
        order = _weighed(facts, listing, chosen, located)
        # What the whole source would show may be missing.
        part = not listing.complete and (order.kind is PositionKind.STORE or order.field.endswith(TIES_BY_STORE))
        order = order._replace(basis="assumed") if part else order
    else:
        order = _by_metadata(facts, chosen, located, complete=listing.complete)
    return order._replace(complete=listing.complete)


def is_strong(order: SourceOrder) -> bool:
    """Return whether metadata of retrieved chunks alone determine their order: nothing else needs to be asked."""
    if order.kind is PositionKind.KEY:
        return True
    if order.uncertain or None in order.keys:
        return False
    if order.kind is PositionKind.STAMPED:
        return None not in numberings(order.chunks)
    if order.kind is PositionKind.LINKS:
        return True
    return order.kind in _EXACT and order.field.split(", ")[0] != LABEL_FIELD


# --- metadata ---------------------------------------------------------------------------------------------------------


def _chosen(facts: Facts, located: Sequence[Span | None]) -> Reading | None:
    """Return the first reading that covers every chunk, else the first of those that cover most chunks."""
    best, best_count, count = None, 0, len(facts.chunks)
    for reading in _readings(facts, located):
        covered = count - reading.keys.count(None)
        if covered > best_count:
            best, best_count = reading, covered
        if best_count == count and best is not None and not _in_runs(best):
            break
    return best


def _readings(facts: Facts, located: Sequence[Span | None]) -> Iterator[Reading]:
    """Yield every reading of the metadata that does not contradict itself, best kind first."""
    by_text = located_reading(facts, located) if any(located) else None
    stamps = stamp_readings(facts)
    if by_text is not None and stamped_by_store(facts.chunks):
        yield by_text
        stamps = (one for one in stamps if one.field != STAMP_FIELD or not _runs_against(one.keys, by_text))
    yield from stamps
    yield from offset_readings(facts)
    if by_text is not None:
        yield by_text
    links = link_reading(facts)
    if links is not None:
        yield links
    yield from page_readings(facts)


def _in_runs(reading: Reading) -> bool:
    """Return whether these are links that form several runs, whose relative order is unknown."""
    return reading.kind is PositionKind.LINKS and len({key[0] for key in reading.keys if key is not None}) > 1


def _runs_against(keys: Sequence[Key | None], other: Reading) -> bool:
    """Return whether the order of these keys contradicts another reading of the same chunks."""
    both = sorted((key, known) for key, known in zip(keys, other.keys, strict=True) if key and known is not None)
    last: dict[Any, Key] = {}
    for _, known in both:
        # Compare only within runs of links: their relative order is unknown.
        run = known[0] if other.kind is PositionKind.LINKS else None
        if run in last and known < last[run]:
            return True
        last[run] = known
    return False


def _by_metadata(
    facts: Facts, chosen: Reading | None, located: Sequence[Span | None], *, complete: bool
) -> SourceOrder:
    """Return the order that the metadata tell, without the sequence of a store."""
    chunks = facts.chunks
    if chosen is None:
        return _unplaced(facts)
    if chosen.kind is PositionKind.PAGE:
        chosen = _without_ties(facts, chosen, located)
    placed = chosen
    if None in chosen.keys and not located:
        placed = chosen._replace(keys=_beside_overlaps(chosen.keys, chunks))
    # Among the chunks that a search found, an overlap may be a phrase that is repeated elsewhere.
    uncertain = _doubts(facts, placed if complete else chosen)
    chosen = placed
    basis: Certainty = "known" if complete or chosen.kind not in _EXACT or chosen.field == LOCATED else "assumed"
    if chosen.kind is PositionKind.STAMPED:
        basis = "assumed" if stamped_by_store(chunks) or None in numberings(chunks) else "known"
    return SourceOrder(chunks, *chosen, facts.spans, uncertain=uncertain, basis=basis)


def _unplaced(facts: Facts) -> SourceOrder:
    """Return the order of chunks of which nothing tells the order."""
    count = len(facts.chunks)
    cause = RESTARTED if len(numberings(facts.chunks)) > 1 else _of_missing(facts)
    uncertain = {index: (Uncertain(cause, "alone"),) for index in range(count)}
    return SourceOrder(facts.chunks, PositionKind.NONE, "", [None] * count, facts.spans, uncertain=uncertain)


def _of_missing(facts: Facts) -> str:
    return CONFLICTING_OFFSETS if ignores_offsets(facts) else MISSING


def _doubts(facts: Facts, chosen: Reading) -> dict[int, tuple[Uncertain, ...]]:
    """Return what is uncertain about the order that metadata alone tell."""
    by_text = chosen.field.endswith(LOCATED)
    if chosen.kind > PositionKind.STAMPED and not by_text and len(numberings(facts.chunks)) > 1:
        # Other metadata are unreliable here too: where stamps restart, offsets usually do.
        return {index: (Uncertain(RESTARTED, "alone"),) for index in range(len(facts.chunks))}
    found: dict[int, list[Uncertain]] = {}
    if None in chosen.keys:
        cause = _of_missing(facts)
        found = {index: [Uncertain(cause, "alone")] for index, key in enumerate(chosen.keys) if key is None}
    in_runs, by_page = _in_runs(chosen), chosen.kind is PositionKind.PAGE
    ignored = by_page and chosen.field in FRAME_FIELDS and ignores_offsets(facts)
    by_page = ignored or (by_page and shared(facts.chunks, chosen.keys))
    by_label = chosen.field.split(", ")[0] == LABEL_FIELD
    if in_runs or by_page or by_label:
        for index, key in enumerate(chosen.keys):
            if key is None:
                continue
            doubts = found.setdefault(index, [])
            if in_runs:
                doubts.append(Uncertain(UNLINKED_RUNS, "across", key[0]))
            if by_page:
                doubts.append(
                    Uncertain(CONFLICTING_OFFSETS, "alone") if ignored else Uncertain(SHARED_POSITION, "within", key)
                )
            if by_label:
                doubts.append(Uncertain(LABELS_ALONE, "across", key[0] if ", " in chosen.field else key))
    return {index: tuple(doubts) for index, doubts in found.items()}


def _without_ties(facts: Facts, pages: Reading, located: Sequence[Span | None]) -> Reading:
    """Order the chunks within pages by the text, stamps, numbers or offsets, if that agrees with the pages."""
    if not shared(facts.chunks, pages.keys):
        return pages
    by_text = located_reading(facts, located or [None] * len(facts.chunks))
    within: list[tuple[str, Sequence[Key | None]]] = []
    if not _runs_against(by_text.keys, pages):
        within.append((LOCATED, by_text.keys))
    within += [
        (one.field, one.keys)
        for one in stamp_readings(facts)
        if not any(_runs_against(one.keys, other) for other in (pages, by_text))
    ]
    within += readings_within_pages(facts, pages)
    # A page with a chunk that a reading lacks keeps its ties: its chunks cannot be compared.
    readings = [
        ({page for page, key in zip(pages.keys, keys, strict=True) if page is None or key is None}, name, keys)
        for name, keys in within
    ]
    lacking, name, finer = min(readings, key=lambda reading: len(reading[0]), default=(set(pages.keys), "", []))
    if lacking.issuperset(pages.keys):
        return pages
    keys = [
        None if page is None else (page, () if page in lacking else key)
        for page, key in zip(pages.keys, finer, strict=True)
    ]
    return Reading(PositionKind.PAGE, f"{pages.field}, {name}", keys)


def _beside_overlaps(keys: Sequence[Key | None], chunks: Sequence[Chunk]) -> list[Key | None]:
    """Return the keys, with one for each chunk without a key that overlaps, directly or not, a chunk with one."""
    following = successors([chunk.text for chunk in chunks], [_page_of(chunk) for chunk in chunks])
    found = list(keys)
    for index, key in enumerate(keys):
        if key is None:
            continue
        after, count = following.get(index), 0
        while after is not None and found[after] is None:
            # The 0 keeps these keys from looking consecutive, as if no chunk were missing between them.
            found[after] = (*key, count, 0)
            after, count = following.get(after), count + 1
    known = sorted(key for key in found if key is not None)
    for before, after in following.items():
        last = found[after]
        if found[before] is None and last is not None and known and known[0] < last:
            found[before] = (*known[bisect_left(known, last) - 1], len(chunks), 0)
    return found


# --- the text of the source -------------------------------------------------------------------------------------------


def _located(facts: Facts, listing: Listing, text: SourceText) -> list[Span | None]:
    """Return the place of each chunk in the text of its source."""
    chunks = facts.chunks
    pages, unplaced = stated_pages(facts)
    texts = [chunk.text for chunk in chunks]
    if listing.complete:
        text.learn(texts)
    places = text.locate(chunks, pages=pages, unplaced=unplaced, in_sequence=listing.complete and listing.in_sequence)
    left = [one for one, at in zip(texts, places, strict=True) if at is None]
    if left and not listing.complete and not text.learned.keys() >= set(left):
        text.learn(left)
        places = text.locate(chunks, pages=pages, unplaced=unplaced)
    return [at and Span(*at) for at in places]


def stated_pages(facts: Facts) -> tuple[Sequence[Key | None], list[bool]]:
    """Return the sort key of the page or another number of each chunk, and whether it states no position at all."""
    stated = _chosen(facts, ())
    nothing: list[Key | None] = [None] * len(facts.chunks)
    keys = nothing if stated is None else stated.keys
    by_page = stated is not None and stated.kind is PositionKind.PAGE
    return keys if by_page else nothing, [key is None for key in keys]


# --- the sequence of the store ----------------------------------------------------------------------------------------


class _Sequence(NamedTuple):
    """A sequence of chunks in which each was compared with the next.

    Attributes:
        order: The indices of the chunks in the listing.
        overlaps: The overlap of each chunk of the listing with the next one; empty if it was not searched for.
        confirmed_by: The field that confirms the sequence; empty if only overlaps can.
        unsure: The chunks whose place nothing confirms.
        refuted: Whether overlaps show that parts of it are out of order.
    """

    order: Sequence[int]
    overlaps: Sequence[int] = ()
    confirmed_by: str = ""
    unsure: Collection[int] = ()
    refuted: bool = False


def _weighed(facts: Facts, listing: Listing, chosen: Reading | None, located: Sequence[Span | None]) -> SourceOrder:
    """Weigh the metadata of all chunks of a source against the sequence in which the store received them."""
    copies = copies_of(facts.chunks)
    if ignores_offsets(facts):
        # In an edited version, the offsets of most chunks differ.
        by_text = copies_of(facts.chunks, by_text=True)
        copies = max((copies, by_text), key=lambda one: len(one.of) if one is not None else 0)
    if copies:
        return _with_copies(copies, facts, listing, located)
    full = chosen if chosen is not None and None not in chosen.keys else None
    exact = None if full is None or full.field.split(", ")[0] == LABEL_FIELD else full
    if exact is not None:
        finer = _without_ties(facts, exact, located) if exact.kind is PositionKind.PAGE else exact
        if finer.kind in _EXACT or (finer is not exact and not shared(facts.chunks, finer.keys)):
            return _by_exact(facts, listing, finer)
    texts = [chunk.text for chunk in facts.chunks]
    overlaps = overlaps_of(texts)
    if all(overlaps) and ends_as_it_begins(texts, overlaps):
        overlaps = [0] * len(overlaps)
    witness = confirmed_order(facts.chunks, located, overlaps, complete=listing.complete)
    if witness is not None:
        rises = exact is not None and _rises([exact.keys[index] for index in witness.order])
        if exact is not None and rises and not witness.unsure and not _in_runs(exact):
            return SourceOrder(facts.chunks, *exact, facts.spans)
        return _in_sequence(facts, listing, _Sequence(witness.order, overlaps, witness.field, witness.unsure))
    if full is not None and full.kind is PositionKind.LINKS and not _in_runs(full):
        return SourceOrder(facts.chunks, *full, facts.spans)
    return _by_overlaps(facts, listing, chosen, _chained(texts, overlaps, facts.chunks), located)


def _by_exact(facts: Facts, listing: Listing, exact: Reading) -> SourceOrder:
    """Return the order by numbers or offsets of all chunks; a few that the sequence shows to be wrong do not count."""
    stamped = exact.kind is PositionKind.STAMPED
    order = agreed_order(
        exact.keys, facts.chunks, offsets=exact.kind in {PositionKind.OFFSET, PositionKind.PAGE_OFFSET}
    )
    if order is not None and not _rises([exact.keys[index] for index in order], strictly=False):
        return _in_sequence(facts, listing, _Sequence(order, confirmed_by=exact.field))
    # Stamps of other tools may begin again in each call.
    alone = stamped and (stamped_by_store(facts.chunks) or (order is None and None in numberings(facts.chunks)))
    return SourceOrder(facts.chunks, *exact, facts.spans, basis="assumed" if alone else "known")


def _by_overlaps(
    facts: Facts,
    listing: Listing,
    chosen: Reading | None,
    sequence: _Sequence,
    located: Sequence[Span | None],
) -> SourceOrder:
    """Return the order that overlapping texts tell, else that of metadata or of the unconfirmed sequence."""
    by_sequence = _in_sequence(facts, listing, sequence)
    if chosen is None or not by_sequence.uncertain:
        return by_sequence
    if None not in chosen.keys and not _in_runs(chosen):
        return _pages_and_sequence(facts, chosen, by_sequence, located)
    if _runs_against(by_sequence.keys, chosen):
        return _by_metadata(facts, chosen, located, complete=True)
    return by_sequence


def _rises(keys: Sequence[Any], *, strictly: bool = True) -> bool:
    return all(before < after or (before == after and not strictly) for before, after in pairwise(keys))


def _in_sequence(facts: Facts, listing: Listing, sequence: _Sequence) -> SourceOrder:
    """Return the order of a sequence, confirmed by a field or, run by run, by overlapping texts."""
    chunks, overlaps = facts.chunks, sequence.overlaps
    keys: list[Key | None] = [None] * len(chunks)
    runs: list[Span | None] = [None] * len(chunks)
    run, start, before = 0, 0, -1
    for number, index in enumerate(sequence.order):
        text = chunks[index].text
        if before >= 0:
            adjacent = index == before + 1 and overlaps
            overlap = overlaps[before] if adjacent else overlap_of(chunks[before].text, text)
            start = start + len(chunks[before].text) - overlap if overlap else 0
            run += not overlap
        keys[index] = (0 if sequence.confirmed_by else run, number)
        runs[index] = Span(start, start + len(text), run)
        before = index
    uncertain: dict[int, tuple[Uncertain, ...]] = {}
    if sequence.confirmed_by:
        field = f"{listing.store}, confirmed by {sequence.confirmed_by}"
        uncertain = {index: (Uncertain(INSERTION_ORDER_ONLY, "alone"),) for index in sequence.unsure}
    else:
        field = f"{listing.store}, {len(chunks) - 1 - run} of {len(chunks) - 1} neighbors overlap"
        cause = TORN_APART if sequence.refuted else INSERTION_ORDER_ONLY
        if run:
            uncertain = {
                index: (Uncertain(cause, "across", span.page),) for index, span in enumerate(runs) if span is not None
            }
    return SourceOrder(chunks, PositionKind.STORE, field, keys, facts.spans, runs, uncertain)


def _chained(texts: Sequence[str], overlaps: Sequence[int], chunks: Sequence[Chunk]) -> _Sequence:
    """Put parts that were added apart where their overlaps belong, if most chunks overlap."""
    count = len(texts)
    listed = range(count)
    links = apart(texts, overlaps, [_page_of(chunk) for chunk in chunks])
    following = {index: index + 1 for index, overlap in enumerate(overlaps) if overlap}
    for end, start in links.items():
        if start not in following.values():
            following.setdefault(end, start)
    if not links or 2 * len(following) < count - 1:
        return _Sequence(listed, overlaps, refuted=bool(links))
    firsts = sorted(set(listed).difference(following.values()))
    order: list[int] = []
    for first in firsts:
        index: int | None = first
        while index is not None:
            order.append(index)
            index = following.get(index)
    # What forms a ring has no first chunk.
    is_complete = len(order) == count
    return _Sequence(order if is_complete else listed, overlaps, refuted=len(firsts) > 1 or not is_complete)


def _page_of(chunk: Chunk) -> list[Any]:
    values = [chunk.metadata.get(name) for name in PAGE_FIELDS]
    return [value if isinstance(value, str | int | float) else None for value in values]


def _pages_and_sequence(
    facts: Facts, pages: Reading, sequence: SourceOrder, located: Sequence[Span | None]
) -> SourceOrder:
    """Return the order by pages or other numbers, and by the sequence of the store inside them."""
    tied = pages.kind is PositionKind.PAGE and shared(facts.chunks, pages.keys)
    if not tied or _runs_against(sequence.keys, pages):
        return _by_metadata(facts, pages, located, complete=True)
    keys: list[Key | None] = [
        None if page is None else (page, place) for page, place in zip(pages.keys, sequence.keys, strict=True)
    ]
    reading = Reading(PositionKind.PAGE, f"{pages.field}{TIES_BY_STORE}", keys)
    uncertain = {
        index: (Uncertain(SHARED_BY_STORE, "split", (page, run and run.page)),)
        for index, (page, run) in enumerate(zip(pages.keys, sequence.runs, strict=True))
    }
    return SourceOrder(facts.chunks, *reading, facts.spans, sequence.runs, uncertain)


def _with_copies(copies: Copies, facts: Facts, listing: Listing, located: Sequence[Span | None]) -> SourceOrder:
    """Return the order of a source with copies, which share the place of the first, and of edited versions."""
    kept = [index for index in range(len(facts.chunks)) if index not in copies.of and index not in copies.edited]
    numbers = {index: number for number, index in enumerate(kept)}
    once = facts_of([listing.chunks[index] for index in kept])
    spots = [located[index] for index in kept] if located else ()
    if spots:
        once = once._replace(spans=spots)
    inner = _weighed(once, listing, _chosen(once, spots), spots)
    count = len(facts.chunks)
    keys: list[Key | None] = [None] * count
    uncertain: dict[int, tuple[Uncertain, ...]] = {}
    spans: list[Span | None] = [None] * count
    runs: list[Span | None] = [None] * count
    for index in range(count):
        first = copies.of.get(index, index)
        after = copies.edited.get(first)
        number = numbers[first if after is None else copies.of.get(after, after)]
        key = inner.keys[number]
        if after is None:
            keys[index], spans[index] = key, inner.spans[number]
            runs[index] = inner.runs[number] if inner.runs else None
            if number in inner.uncertain:
                uncertain[index] = inner.uncertain[number]
        else:
            keys[index] = None if key is None else (*key, index, 0)
            uncertain[index] = (Uncertain(ADDED_AGAIN, "alone"),)
    return SourceOrder(
        facts.chunks, inner.kind, inner.field, keys, spans, runs if inner.runs else (), uncertain, inner.basis
    )
