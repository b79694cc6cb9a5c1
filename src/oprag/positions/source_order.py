"""The order of a source: the one decision, made by `order_of` from all that is known of its chunks.

Evidence is weighed, not vetoed: metadata, offsets, links, overlapping texts, the text of the source and the sequence in
which the store received the chunks are witnesses, and what two of them tell is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from oprag.chunk import UNKNOWN_POSITION, Chunk, Key, Place, Position, PositionKind, Span, Uncertain
from oprag.options import PositionKey
from oprag.positions.copies import Again, copies_of
from oprag.positions.fields import LABEL_FIELD, ROOTS, SOURCE_FIELDS, START_FIELDS, USED_FIELDS, name_headings
from oprag.positions.insertion_order import Witness, agreed_order, confirmed_order
from oprag.positions.overlaps import overlap_of, overlaps_of, successors
from oprag.positions.readings import (
    FRAME_FIELDS,
    LOCATED,
    TIES_BY_STORE,
    Facts,
    Reading,
    best_reading,
    by_position_key,
    facts_of,
    ignores_offsets,
    located_reading,
    numberings,
    page_readings,
    readings_within_pages,
    runs_against,
    shared,
    stamped_by_store,
    stated_span,
)
from oprag.positions.source_text import SourceText
from oprag.positions.values import TOO_LARGE

__all__ = [
    "ADDED_AGAIN",
    "BY_DOCUMENT",
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
    "Offsets",
    "SourceOrder",
    "is_strong",
    "order_of",
]

Certainty = Literal["known", "assumed", "unknown"]

# Causes of doubt, as the text of the message.
RESTARTED = "chunk_index was stamped in several calls, each starting at 0, so it does not tell the order of the source"
UNLINKED_RUNS = (
    "the links of a source form several runs of unknown order, so the run with the best-ranked chunk comes first"
)
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
BY_DOCUMENT = "numbers of chunks tell the order of several documents of one source, which is wrong if each begins again"
SHARED_POSITION = "chunks of a source share a page or another number, so they are ordered by retrieval rank there"
CONFLICTING_OFFSETS = (
    "the character offsets of a source contradict each other, so they are ignored and the order is uncertain"
)
ADDED_AGAIN = "the source seems to have been added to the store more than once"
TORN_APART = "chunks that overlap were added to the store apart from each other"
BY_STORE = frozenset({INSERTION_ORDER_ONLY, SHARED_BY_STORE})
"""Causes of doubt where only the order of the store tells the order."""
_ASSUMED = BY_STORE | {LABELS_ALONE, BY_DOCUMENT}
_NOTHING: Mapping[int, tuple[Uncertain, ...]] = MappingProxyType({})
_EXACT = (PositionKind.STAMPED, PositionKind.PAGE_OFFSET, PositionKind.OFFSET)
# By the field of an offset, the fields beside it that may tell something about a place, too.
_BESIDE = {field: (USED_FIELDS | ROOTS).difference(SOURCE_FIELDS, [field]) for field in START_FIELDS}


class Listing(NamedTuple):
    """The chunks of one source."""

    chunks: Sequence[Chunk]
    in_sequence: bool = False  # whether they are in the sequence in which the store received them
    complete: bool = False  # whether these are all that the search can find, not only those that it found
    store: str = ""  # its name, for reports


class SourceOrder(NamedTuple):
    """The order of the chunks of one source."""

    chunks: Sequence[Chunk]
    kind: PositionKind
    field: str  # what the positions were read from
    keys: Sequence[Key | None]  # to sort by; None where the place of a chunk is unknown
    spans: Sequence[Span | None]  # the character offsets in the source or its page
    # The offsets in each run of overlapping chunks, with the run as the page; empty if no texts were compared.
    runs: Sequence[Span | None] = ()
    uncertain: Mapping[int, tuple[Uncertain, ...]] = _NOTHING  # by the index of a chunk
    basis: Certainty = "known"  # how certain the order is where no chunk is uncertain
    complete: bool = False  # whether these are all chunks of the source

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
    def sequence(self) -> list[int] | None:
        """The indices of the chunks in order; None if ranks matter, as where two share a place or one has none."""
        indices = {key: index for index, key in enumerate(self.keys) if key is not None}
        decided = len(indices) == len(self.keys) and not self.uncertain
        return [indices[key] for key in sorted(indices)] if decided else None

    @property
    def certainty(self) -> Certainty:
        """How certain the order of all chunks is."""
        return self.certainty_with(self.doubts_among())

    def certainty_with(self, doubts: Collection[str]) -> Certainty:
        """How certain the order of chunks is about which there are these doubts."""
        if any(doubt not in _ASSUMED for doubt in doubts):
            return "unknown"
        return "assumed" if doubts else self.basis

    def doubts_among(self, indices: Collection[int] | None = None) -> Mapping[str, list[int]]:
        """The causes of doubt about the order of some or all chunks, each with the chunks that it concerns."""
        indices = range(len(self.chunks)) if indices is None else indices
        members: dict[tuple[str, str], dict[Any, list[int]]] = {}
        for index in indices if self.uncertain and len(indices) > 1 else ():
            for one in self.uncertain.get(index, ()):
                members.setdefault((one.cause, one.among), {}).setdefault(one.group, []).append(index)
        found: dict[str, list[int]] = {}
        for (cause, among), groups in members.items():
            if concerned := _concerned(among, groups, self.chunks):
                found.setdefault(cause, []).extend(concerned)
        return found

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
    tied = (indices for indices in groups.values() if len({chunks[index].text for index in indices}) > 1)
    return list(chain.from_iterable(tied))


def order_of(listing: Listing, position_key: PositionKey | None = None, text: SourceText | None = None) -> SourceOrder:
    """Decide the order of the chunks of one source; a `position_key` is trusted, and a text is searched for them."""
    facts = facts_of(listing.chunks)
    if position_key is not None:
        reading = by_position_key(listing.chunks, position_key)
        missing = {index: (Uncertain(MISSING, "alone"),) for index, key in enumerate(reading.keys) if key is None}
        return SourceOrder(listing.chunks, *reading, facts.spans, uncertain=missing)
    if text is not None:
        located = _located(facts, listing, text)
        facts = facts._replace(spans=located, located=located)
    if listing.in_sequence and listing.chunks:
        order = _weighed(facts, listing)
    else:
        order = _by_metadata(facts, best_reading(facts), complete=listing.complete)
    return order._replace(complete=listing.complete)


def is_strong(order: SourceOrder) -> bool:
    """Return whether metadata of retrieved chunks alone determine their order: nothing else needs to be asked."""
    if order.uncertain or None in order.keys:
        return False
    if order.kind is PositionKind.STAMPED:
        return None not in numberings(order.chunks)
    if order.kind not in _EXACT:
        return order.kind is PositionKind.LINKS
    return not _is_by_label(order) and not _is_one_inside(order)


def _is_one_inside(order: SourceOrder) -> bool:
    """Return whether a chunk is inside another: a splitter that searches for offsets finds an earlier place."""
    keys = sorted({key for key in order.keys if key is not None})
    for last, key in pairwise(keys):
        if key[:-2] == last[:-2] and (key[-2] == last[-2] or key[-1] <= last[-1]):
            return not any(chunk.parent_id or chunk.child_ids for chunk in order.chunks)
    return False


# --- metadata ---------------------------------------------------------------------------------------------------------


def _in_runs(reading: Reading) -> bool:
    """Return whether these are links that form several runs, whose relative order is unknown."""
    return reading.kind is PositionKind.LINKS and len({key[0] for key in reading.keys if key is not None}) > 1


def _is_by_label(reading: Reading | SourceOrder) -> bool:
    return reading.field.split(", ")[0] == LABEL_FIELD


def _by_metadata(facts: Facts, chosen: Reading | None, *, complete: bool) -> SourceOrder:
    """Return the order that the metadata tell, without the sequence of a store."""
    chunks = facts.chunks
    if chosen is None:
        chosen = Reading(PositionKind.NONE, "", [None] * len(chunks))
    if chosen.kind is PositionKind.PAGE:
        chosen = _without_ties(facts, chosen)
    placed = chosen
    if None in chosen.keys and not facts.located and chosen.kind is not PositionKind.NONE:
        placed = chosen._replace(keys=_beside_overlaps(chosen.keys, chunks))
    # Among the chunks that a search found, an overlap may be a phrase that is repeated elsewhere.
    uncertain = _doubts(facts, placed if complete else chosen)
    if chosen.kind is PositionKind.STAMPED:
        checked = not stamped_by_store(chunks) and None not in numberings(chunks)
    else:
        checked = complete or chosen.kind not in _EXACT or chosen.field == LOCATED
    order = SourceOrder(chunks, *placed, facts.spans, uncertain=uncertain, basis="known" if checked else "assumed")
    return _with_basis(order)


def _with_basis(order: SourceOrder) -> SourceOrder:
    """Return the order as assumed if an offset that nothing checked puts a chunk inside another one."""
    unchecked = order.kind in (PositionKind.OFFSET, PositionKind.PAGE_OFFSET) and order.field != LOCATED
    found = unchecked and None not in order.keys and _is_one_inside(order)
    return order._replace(basis="assumed") if found else order


def _doubts(facts: Facts, chosen: Reading) -> dict[int, tuple[Uncertain, ...]]:
    """Return what is uncertain about the order that metadata alone tell."""
    if chosen.kind > PositionKind.STAMPED and not chosen.field.endswith(LOCATED) and len(numberings(facts.chunks)) > 1:
        # Other metadata are unreliable here too: where stamps restart, offsets usually do.
        return dict.fromkeys(range(len(facts.chunks)), (Uncertain(RESTARTED, "alone"),))
    in_runs, by_label = _in_runs(chosen), _is_by_label(chosen)
    by_page = chosen.kind is PositionKind.PAGE
    ignored = ignores_offsets(facts)
    conflicting = by_page and chosen.field in FRAME_FIELDS and ignored
    tied = by_page and not conflicting and shared(facts.chunks, chosen.keys)
    missing = None in chosen.keys
    if chosen.kind is PositionKind.STAMPED and not facts.pages and len(facts.chunks) > 1:
        documents = [chunk.document_id for chunk in facts.chunks]
        if len(set(documents)) > 1 and numberings(facts.chunks) == {None}:
            return {index: (Uncertain(BY_DOCUMENT, "across", name),) for index, name in enumerate(documents)}
    found: dict[int, tuple[Uncertain, ...]] = {}
    for index, key in enumerate(chosen.keys) if missing or in_runs or conflicting or tied or by_label else ():
        doubts = (
            key is None and Uncertain(CONFLICTING_OFFSETS if ignored else MISSING, "alone"),
            in_runs and key is not None and Uncertain(UNLINKED_RUNS, "across", key[0]),
            conflicting and key is not None and Uncertain(CONFLICTING_OFFSETS, "alone"),
            tied and key is not None and Uncertain(SHARED_POSITION, "within", key),
            by_label and key is not None and Uncertain(LABELS_ALONE, "across", key[0] if ", " in chosen.field else key),
        )
        if uncertain := tuple(doubt for doubt in doubts if doubt):
            found[index] = uncertain
    return found


def _without_ties(facts: Facts, pages: Reading) -> Reading:
    """Order the chunks within pages by the text, numbers or offsets, if that agrees with the pages."""
    if not shared(facts.chunks, pages.keys):
        return pages
    within = list(readings_within_pages(facts, pages.keys, pages.field))
    by_text = located_reading(facts)
    if by_text is not None and not runs_against(by_text.keys, pages.keys):
        within.insert(0, (LOCATED, by_text.keys))
    # A page with a chunk that a reading lacks keeps its ties: its chunks cannot be compared.
    lacking = [
        {page for page, key in zip(pages.keys, keys, strict=True) if page is None or key is None} for _, keys in within
    ]
    if all(without.issuperset(pages.keys) for without in lacking):
        return pages
    (name, finer), without = min(zip(within, lacking, strict=True), key=lambda one: len(one[1]))
    both = zip(pages.keys, finer, strict=True)
    keys = [page and (page, () if page in without else key) for page, key in both]
    return Reading(PositionKind.PAGE, f"{pages.field}, {name}", keys)


def _beside_overlaps(keys: Sequence[Key | None], chunks: Sequence[Chunk]) -> list[Key | None]:
    """Return the keys, with one for each chunk without a key that overlaps, directly or not, a chunk with one."""
    texts = [chunk.text for chunk in chunks]
    following = successors(texts, overlaps_of(texts))
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


_Claim = tuple[int, int, str, int]


class Offsets(NamedTuple):
    """Chunks of a source whose order only plain offsets tell: more of them change nothing about the others.

    For speed alone: `order_of` decides the same order.
    """

    order: SourceOrder
    claims: list[_Claim]  # start, end and text of each, and its index, in order

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Offsets | None:
        """The offsets of chunks; None if anything else may tell the place of one."""
        field = next((name for name in START_FIELDS if chunks and name in chunks[0].metadata), "")
        nothing = SourceOrder([], PositionKind.OFFSET, field, [], [], basis="assumed")
        return cls(nothing, []).with_more(chunks) if field else None

    @property
    def sequence(self) -> list[int]:
        """The indices of the chunks in order."""
        return [index for *_, index in self.claims]

    def with_more(self, chunks: Sequence[Chunk]) -> Offsets | None:
        """The same with more chunks; None if the order of all must be decided from more than their offsets."""
        order, before = self.order, len(self.claims)
        every = [*order.chunks, *chunks]
        new: list[_Claim] = []
        for index, chunk in enumerate(chunks, before):
            if not _states_only_offset(chunk, order.field, every[0]):
                return None
            start, text = chunk.metadata[order.field], chunk.text
            new.append((start, start + len(text), text, index))
        if name_headings(chunk.metadata for chunk in chunks):
            # Offsets may begin again in each section.
            return None
        claims = sorted([*self.claims, *new])
        for first, second in pairwise(claims):
            if (first[3] >= before or second[3] >= before) and not _agree(first, second):
                return None
        keys = [claim[:2] for claim in new]
        spans = [Span(*key) for key in keys]
        return Offsets(order._replace(chunks=every, keys=[*order.keys, *keys], spans=[*order.spans, *spans]), claims)


def _states_only_offset(chunk: Chunk, field: str, other: Chunk) -> bool:
    """Return whether only an offset tells the place of a chunk, and its source is named as that of the other chunk."""
    metadata, its = chunk.metadata, other.metadata
    start = metadata.get(field)
    return (
        type(start) is int
        and 0 <= start < TOO_LARGE
        and _BESIDE[field].isdisjoint(metadata)
        # A page or a time in a name would differ.
        and type(metadata.get("source", "")) is type(metadata.get("url", "")) is str
        and metadata.get("source") == its.get("source")
        and metadata.get("url") == its.get("url")
        and chunk.place is None
        and chunk.span is None
        and chunk.position is None
        and not (chunk.previous_id or chunk.next_id or chunk.parent_id or chunk.child_ids)
    )


def _agree(first: _Claim, second: _Claim) -> bool:
    """Return whether a text begins before another one, and the other begins as it ends if they overlap."""
    start, end, text, _ = first
    other, _, its_text, _ = second
    return start < other and (end <= other or text[other - start :] == its_text[: end - other])


# --- the text of the source -------------------------------------------------------------------------------------------


def _located(facts: Facts, listing: Listing, text: SourceText) -> list[Span | None]:
    """Return the place of each chunk in the text of its source."""
    stated = best_reading(facts)
    by_page = stated is not None and stated.kind in {PositionKind.PAGE, PositionKind.PAGE_OFFSET}
    pages = stated.keys if stated is not None and by_page else [None] * len(facts.chunks)
    # Offsets beside a page are relative to the page.
    offsets = [
        own.start if page is None and (own := stated_span(chunk)) is not None and own.page is None else None
        for chunk, page in zip(facts.chunks, pages, strict=True)
    ]
    places = text.locate(
        [chunk.text for chunk in facts.chunks],
        pages,
        offsets,
        complete=listing.complete,
        in_sequence=listing.complete and listing.in_sequence,
    )
    return [at and Span(*at) for at in places]


# --- the sequence of the store ----------------------------------------------------------------------------------------


def _weighed(facts: Facts, listing: Listing) -> SourceOrder:
    """Weigh the metadata of all chunks of a source against the sequence in which the store received them."""
    chunks = facts.chunks
    copies = copies_of(chunks)
    if ignores_offsets(facts):
        copies = max(copies, copies_of(chunks, by_text=True), key=len)
    if copies:
        return _with_copies(copies, facts, listing)
    chosen = best_reading(facts)
    if chosen is not None and None not in chosen.keys and not _is_by_label(chosen):
        exact = _without_ties(facts, chosen) if chosen.kind is PositionKind.PAGE else chosen
        if exact.kind in _EXACT or (exact is not chosen and not shared(chunks, exact.keys)):
            return _by_exact(facts, listing, exact)
    texts = [chunk.text for chunk in chunks]
    overlaps = overlaps_of(texts)
    witness = confirmed_order(chunks, facts.located, overlaps, complete=listing.complete)
    if witness is not None:
        adjacent = {index: index + 1 for index, overlap in enumerate(overlaps) if overlap}
        following = adjacent if witness.order == [*range(len(chunks))] else successors(texts, overlaps)
        return _in_sequence(facts, listing, witness.order, following, witness=witness)
    return _by_overlaps(facts, listing, chosen, overlaps)


def _by_exact(facts: Facts, listing: Listing, exact: Reading) -> SourceOrder:
    """Return the order by numbers or offsets of all chunks; a few that the sequence shows to be wrong do not count."""
    stamped = exact.kind is PositionKind.STAMPED
    has_gaps = not (listing.complete and _has_no_gaps(exact))
    offsets = exact.kind in (PositionKind.OFFSET, PositionKind.PAGE_OFFSET)
    # Nothing refutes the text of the source.
    compared = has_gaps and exact.field != LOCATED
    agreed = agreed_order(exact.keys, facts.chunks, offsets=offsets) if compared else None
    in_order: list[Any] = [exact.keys[index] for index in agreed.order] if agreed else []
    if agreed is not None and (agreed.wrong or any(after < before for before, after in pairwise(in_order))):
        texts = [chunk.text for chunk in facts.chunks]
        following = successors(texts, overlaps_of(texts))
        witness = Witness(exact.field, agreed.order, wrong=agreed.wrong)
        return _in_sequence(facts, listing, agreed.order, following, witness=witness)
    # Stamps of other tools may begin again in each call.
    several = has_gaps and agreed is None and None in numberings(facts.chunks)
    alone = stamped and (stamped_by_store(facts.chunks) or several)
    order = SourceOrder(facts.chunks, *exact, facts.spans, basis="assumed" if alone else "known")
    return order if agreed else _with_basis(order)


def _has_no_gaps(exact: Reading) -> bool:
    """Return whether these numbers (on each page) lack and repeat none: a wrong one would leave a gap."""
    if exact.kind not in (PositionKind.STAMPED, PositionKind.PAGE):
        return False
    numbers: dict[Any, list[Key]] = {}
    for key in exact.keys:
        page, number = (None, key) if exact.kind is PositionKind.STAMPED else key or (None, ())
        numbers.setdefault(page, []).append(number or ())
    return all(
        sorted(some) in ([(number,) for number in range(first, first + len(some))] for first in (0, 1))
        for some in numbers.values()
    )


def _by_overlaps(facts: Facts, listing: Listing, chosen: Reading | None, overlaps: Sequence[int]) -> SourceOrder:
    """Return the order that overlapping texts tell, else that of metadata or of the unconfirmed sequence."""
    by_sequence = _chained(facts, listing, overlaps)
    if chosen is None or not by_sequence.uncertain:
        return by_sequence
    if _in_runs(chosen):
        # Documents of one page each are linked apart.
        chosen = next((pages for pages in page_readings(facts) if None not in pages.keys), chosen)
    contradicted = runs_against(by_sequence.keys, chosen.keys)
    if None in chosen.keys or _in_runs(chosen):
        return _by_metadata(facts, chosen, complete=True) if contradicted else by_sequence
    if contradicted or chosen.kind is not PositionKind.PAGE or not shared(facts.chunks, chosen.keys):
        return _by_metadata(facts, chosen, complete=True)
    # By pages or other numbers, and by the sequence of the store inside them.
    keys = [*zip(chosen.keys, by_sequence.keys, strict=True)]
    runs = {(page, run and run.page) for page, run in zip(chosen.keys, by_sequence.runs, strict=True)}
    of_page = Counter(page for page, _ in runs)
    return by_sequence._replace(
        kind=PositionKind.PAGE,
        field=f"{chosen.field}{TIES_BY_STORE}",
        keys=keys,
        uncertain={
            index: (Uncertain(SHARED_BY_STORE, "within", page),)
            for index, page in enumerate(chosen.keys)
            if of_page[page] > 1
        },
    )


def _chained(facts: Facts, listing: Listing, overlaps: Sequence[int]) -> SourceOrder:
    """Return the order of the sequence, with parts that were added apart where their overlaps belong."""
    listed = range(len(facts.chunks))
    following = successors([chunk.text for chunk in facts.chunks], overlaps)
    refuted = any(after != before + 1 for before, after in following.items())
    if not refuted or 2 * len(following) < len(overlaps):
        return _in_sequence(facts, listing, listed, following, refuted=refuted)
    firsts = sorted(set(listed).difference(following.values()))
    order: list[int] = []
    for index in firsts:
        order.append(index)
        while (after := following.get(order[-1])) is not None:
            order.append(after)
    if len(order) < len(listed):
        # Overlaps that form a ring tell nothing.
        return _in_sequence(facts, listing, listed, {})
    return _in_sequence(facts, listing, order, following, refuted=len(firsts) > 1)


def _in_sequence(
    facts: Facts,
    listing: Listing,
    order: Sequence[int],
    following: Mapping[int, int],
    *,
    witness: Witness | None = None,
    refuted: bool = False,
) -> SourceOrder:
    """Return the order of a sequence, which a field or, run by run, overlapping texts confirm, or refute in parts."""
    chunks, spans = facts.chunks, facts.spans
    keys: list[Key | None] = [None] * len(chunks)
    runs: list[Span | None] = [None] * len(chunks)
    run, start, before = 0, 0, -1
    for number, index in enumerate(order):
        text = chunks[index].text
        if number:
            overlap = overlap_of(chunks[before].text, text) if following.get(before) == index else 0
            start = start + len(chunks[before].text) - overlap if overlap else 0
            run += not overlap
        keys[index] = (0 if witness else run, number)
        runs[index] = Span(start, start + len(text), run)
        before = index
    if witness is not None:
        field = f"{listing.store}, confirmed by {witness.field}"
        uncertain = {
            index: (Uncertain(INSERTION_ORDER_ONLY, "across", file),) for index, file in enumerate(witness.files)
        }
        uncertain |= {index: (Uncertain(INSERTION_ORDER_ONLY, "alone"),) for index in witness.unsure}
        spans = [None if index in witness.wrong else span for index, span in enumerate(spans)]
    else:
        field = f"{listing.store}, {len(chunks) - 1 - run} of {len(chunks) - 1} neighbors overlap"
        cause = TORN_APART if refuted else INSERTION_ORDER_ONLY
        uncertain = {index: (Uncertain(cause, "across", one and one.page),) for index, one in enumerate(runs) if run}
    # What the whole source would show may be missing.
    basis: Certainty = "known" if listing.complete else "assumed"
    return SourceOrder(chunks, PositionKind.STORE, field, keys, spans, runs, uncertain, basis)


def _with_copies(copies: Mapping[int, Again], facts: Facts, listing: Listing) -> SourceOrder:
    """Return the order of a source with copies, which share the place of the first, and of edited versions."""
    kept = [index for index in range(len(facts.chunks)) if index not in copies]
    located = [facts.located[index] for index in kept] if facts.located else ()
    once = _weighed(facts_of([facts.chunks[index] for index in kept], located), listing)
    numbers = {index: number for number, index in enumerate(kept)}
    keys: list[Key | None] = []
    spans: list[Span | None] = []
    runs: list[Span | None] = []
    uncertain: dict[int, tuple[Uncertain, ...]] = {}
    for index in range(len(facts.chunks)):
        first, edited = copies.get(index, (index, False))
        number = numbers[first]
        key = once.keys[number]
        keys.append((*key, index, 0) if edited and key is not None else key)
        spans.append(None if edited else once.spans[number])
        runs.append(once.runs[number] if once.runs and not edited else None)
        if edited:
            uncertain[index] = (Uncertain(ADDED_AGAIN, "alone"),)
        elif number in once.uncertain:
            uncertain[index] = once.uncertain[number]
    return once._replace(
        chunks=facts.chunks, keys=keys, spans=spans, runs=runs if once.runs else (), uncertain=uncertain
    )
