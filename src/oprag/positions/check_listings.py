"""Checks how the order of each source in a store or list is known, by the same rules as retrieval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, islice, takewhile
from operator import attrgetter
from statistics import median_low
from typing import Any, NamedTuple

from oprag.chunk import UNKNOWN_POSITION, Chunk, PositionKind, changed, counted
from oprag.masking import clean, describe, masked_error, without_keys
from oprag.options import ContextOptions, check_count
from oprag.positions.fields import LABEL_FIELD, NUMBERING_FIELD, STAMPED_FIELDS
from oprag.positions.near_duplicates import near_duplicates
from oprag.positions.overlaps import overlaps_of
from oprag.positions.placing import Placed, SourceReport, doubts, place
from oprag.positions.position_check import Note, PositionCheck, SourceCheck
from oprag.positions.readings import TIES_BY_STORE, shared, stamped_by_store, stated_span
from oprag.positions.remedies import SHARED_NAME, Remedies
from oprag.positions.source_order import ADDED_AGAIN, Certainty, Listing, is_strong, order_of
from oprag.positions.source_text import SourceText
from oprag.positions.sources import SourceKey, field_of, source_of, warn_about_key
from oprag.positions.values import ordinal

__all__ = ["Checked", "check_listings"]

_MIN_OVERLAP_SHARE = 0.05  # minimum share of overlapping text for a note
# Minimum number of repeated texts; fewer may come from a source that repeats itself.
_MIN_REPEATED = 5
_MAX_TRIES = 20  # parts that were added again, and the candidates for each
_ALL = 1_000_000_000  # more chunks than any store contains
# The kinds whose position identifies one place in the source.
_EXACT = (PositionKind.KEY, PositionKind.STAMPED, PositionKind.PAGE_OFFSET, PositionKind.OFFSET)
# Copies share a place in the sequence of a store.
_UNIQUE = (*_EXACT, PositionKind.STORE)
_PLACED = (*_UNIQUE, PositionKind.PAGE)
# Simulates retrieval of a subset: links can bridge one missing chunk, but not two.
_EVERY = 3
_MAX_LEVELS = 10  # parent links may form a cycle
_NOT_IN_TEXT = "some of them were not found in its text, which may be another version"
_IN_PARTS = "all chunks together tell the order of a source, but not the subset that a search returns"
_MERGED = "a search can return parents in place of these chunks, and then "


class Checked(NamedTuple):
    """The chunks of a store, or a list of chunks from the caller.

    Attributes:
        name: The name of the store or list, for the report.
        chunks: The chunks.
        in_insertion_order: Whether the chunks are in the order in which they were added to a store.
        total: Number of chunks, if known.
        read_whole: Whether retrieval decides an order from all chunks of the source, not only the retrieved ones.
        parent: Returns the parent with an id, if a search can return parents in place of the chunks inside them.
    """

    name: str
    chunks: Iterable[Chunk]
    in_insertion_order: bool = False
    total: int | None = None
    read_whole: bool = True
    parent: Callable[[str], Chunk | None] | None = None


def check_listings(
    listings: Sequence[Checked],
    options: ContextOptions,
    remedies: Callable[[Sequence[Chunk]], Remedies],
    *,
    max_chunks: int,
    read_source: Callable[[str], str] | None = None,
) -> PositionCheck:
    """Check the order of the chunks in listings; a source in several listings is taken from the first.

    Args:
        listings: The chunks.
        options: Supplies `source_key` and `position_key`; the other options are ignored.
        remedies: Returns the lines of code for the chunks of a source; called with no chunks for general notes.
        max_chunks: Maximum number of chunks to read.
        read_source: Reads the text of a source, in which chunks of uncertain order are located.
    """
    check_count("max_chunks", max_chunks, optional=False)
    sample = _read(listings, options.source_key, max_chunks)
    warn_about_key("source_key", options.source_key, sample.chunks)
    warn_about_key("position_key", options.position_key, sample.chunks)
    judged = _judged(sample, options)
    located = _LocatedChunks(sample.chunks, set(), {}, set(), {})
    if read_source is not None and options.position_key is None:
        located = _locate(judged, sample, read_source)
        judged = _judged(sample._replace(chunks=located.chunks), options, located.texts)
    total = None if any(listing.total is None for listing in listings) else sum(one.total or 0 for one in listings)
    checked = _options(options, sample, total)

    def lines(chunks: Sequence[Chunk]) -> Remedies:
        return replace(remedies(chunks), checked=checked)

    checks, repeated = _checks(judged, lines, located.lacking)
    return PositionCheck(
        searched=" and ".join(dict.fromkeys(listing.name for listing in listings)),
        sources=tuple(sorted(checks, key=_worst_first)),
        chunks=len(sample.chunks),
        total=total if len(listings) == 1 else None,
        sampled=sample.sampled,
        partial_source=sample.partial_source,
        notes=tuple(_notes(checks, judged, located, lines(()))),
        module=lines(()).module,
        repeated=frozenset(sample.places[rank] for check in checks for rank in repeated[check.source]),
    )


def _options(options: ContextOptions, sample: _Sample, total: int | None) -> str:
    """Return, as code, the options for a check that reads the same sources with all of their chunks."""
    keys = {"source_key": options.source_key, "position_key": options.position_key}
    shown = [f"{name}={name if callable(key) else repr(key)}" for name, key in keys.items() if key is not None]
    if sample.sampled:
        shown.append(f"max_chunks={total or _ALL}")
    return "".join(f", {one}" for one in shown)


class _Sample(NamedTuple):
    """The chunks that were read.

    Attributes:
        chunks: The chunks; their ranks are their indexes in this list.
        listings: The listing that the chunks of each source come from.
        places: The index of each chunk in its listing.
        sampled: Whether there are more chunks than were read.
        partial_source: Name of the source that was dropped because the sample ends in the middle of it.
    """

    chunks: list[Chunk]
    listings: Mapping[str | None, Checked]
    places: Sequence[int]
    sampled: bool = False
    partial_source: str = ""


def _read(listings: Sequence[Checked], source_key: SourceKey | None, max_chunks: int) -> _Sample:
    """Read at most `max_chunks` chunks."""
    chunks: list[Chunk] = []
    places: list[int] = []
    listed: dict[str | None, Checked] = {}
    for listing in listings:
        rows = iter(listing.chunks)
        named = [(chunk, source_of(chunk, source_key)) for chunk in islice(rows, max_chunks - len(chunks))]
        new = [(place, chunk, name) for place, (chunk, name) in enumerate(named) if name not in listed]
        following = next(rows, None) if len(chunks) + len(named) >= max_chunks else None
        partial_source = None if following is None or not new else source_of(following, source_key)
        if (
            partial_source is not None
            and partial_source == new[-1][2]
            and any(name != partial_source for _, _, name in new)
        ):
            new = [one for one in new if one[2] != partial_source]
        else:
            partial_source = None
        chunks += [changed(chunk, rank=rank) for rank, (_, chunk, _) in enumerate(new, len(chunks))]
        places += [place for place, _, _ in new]
        listed.update((name, listing) for _, _, name in new)
        if following is not None:
            return _Sample(chunks, listed, places, sampled=True, partial_source=partial_source or "")
    return _Sample(chunks, listed, places)


class _Problem(NamedTuple):
    """Why the order of a source is uncertain.

    Attributes:
        what: The reason, in words.
        cause: A constant of `placing`, `insertion_order` or `remedies`.
    """

    what: str
    cause: str


class _Judged(NamedTuple):
    """The chunks with their positions, and the problems of their sources.

    Attributes:
        chunks: The chunks as retrieval reads them, by rank.
        placed: The chunks with their positions.
        problems: The problem of each source that has one.
        certainties: How certain the order of each source with a name is, from all of its chunks.
    """

    chunks: Sequence[Chunk]
    placed: Placed
    problems: Mapping[str | None, _Problem]
    certainties: Mapping[str | None, Certainty]


def _judged(sample: _Sample, options: ContextOptions, texts: Mapping[str | None, SourceText] | None = None) -> _Judged:
    """Find positions, and collect the problems.

    Args:
        sample: The chunks.
        options: The options of the check.
        texts: The texts in which parents are located.
    """
    judged = _judged_alone(sample, options)
    problems = dict(judged.problems)
    for group in judged.placed.groups.values():
        source, parent = group[0].source, sample.listings[group[0].source].parent
        if parent is None:
            continue
        text = (texts or {}).get(source)
        in_order = [judged.chunks[chunk.rank] for chunk in sorted(group, key=_key_of)]
        for part in _with_parents(in_order, parent):
            without = [changed(one, place=None) for one in part]
            for cause in order_of(Listing(without), options.position_key, text).doubts_among(range(len(part)))[:1]:
                problems.setdefault(source, _Problem(_MERGED + cause, cause))
    return judged._replace(problems=problems)


def _judged_alone(sample: _Sample, options: ContextOptions) -> _Judged:
    """Decide the order of each source, and collect the problems, without parents."""
    keys = options.source_key, options.position_key
    chunks = list(sample.chunks)
    placed = place(chunks, *keys)
    problems: dict[str | None, _Problem] = {}
    certainties: dict[str | None, Certainty] = {}
    for name, group in placed.groups.items():
        source = group[0].source
        listing = sample.listings[source]
        # A store can list the other chunks of a source only by a metadata key that contains its name.
        read_whole = listing.read_whole and field_of(group, options.source_key) != ""
        linked = any(chunk.previous_id or chunk.next_id for chunk in group)
        certainties[source] = placed.orders[name].certainty
        # Places in the text of the source are known already.
        if source is None or len(group) < 2 or group[0].place is not None or options.position_key is not None:
            continue
        given = [changed(chunks[chunk.rank], source=source) for chunk in group]
        in_sequence = listing.in_insertion_order
        order = order_of(Listing(given, in_sequence, complete=True, store=listing.name))
        certainties[source] = order.certainty
        if is_strong(placed.orders[name]) and (read_whole or not linked):
            continue
        for chunk, at in zip(group, order.places, strict=True):
            chunks[chunk.rank] = changed(chunks[chunk.rank], place=at)
        if not read_whole and not order.uncertain:
            part = sorted(zip(order.keys, given, strict=True), key=lambda one: one[0] or ())[::_EVERY]
            found = order_of(Listing([chunk for _, chunk in part], in_sequence, store=listing.name))
            if causes := found.doubts_among(range(len(part))):
                problems[source] = _Problem(_IN_PARTS if linked else causes[0], causes[0])
    placed = place(chunks, *keys)
    for doubt in doubts(placed, placed.chunks, options):
        for source in {chunk.source for chunk in doubt.chunks}:
            problems.setdefault(source, _Problem(doubt.what, doubt.cause))
    return _Judged(chunks, placed, problems, certainties)


def _with_parents(chunks: Sequence[Chunk], parent: Callable[[str], Chunk | None]) -> Iterator[list[Chunk]]:
    """Yield the chunks with every second parent in place of the chunks inside it, then the same one level higher."""
    level = list(chunks)
    for _ in range(_MAX_LEVELS):
        found = {key: parent(key) for key in dict.fromkeys(chunk.parent_id for chunk in level) if key is not None}
        above = {key: one for key, one in found.items() if one is not None}
        if not above:
            break
        merged = set(list(above)[::2])
        mixed = [above[key] if (key := chunk.parent_id) in merged else chunk for chunk in level]
        yield [changed(chunk, rank=rank) for rank, chunk in enumerate({one.id: one for one in mixed}.values())]
        level = list({one.id: one for one in (above.get(chunk.parent_id or "", chunk) for chunk in level)}.values())


class _LocatedChunks(NamedTuple):
    """The result of locating chunks in the texts of their sources.

    Attributes:
        chunks: All chunks, with the spans that were found.
        sources: The sources with located chunks.
        unread: For each source whose text cannot be read, the reason.
        lacking: The sources whose text does not contain some of the chunks.
        texts: The texts of sources whose chunks have parents.
    """

    chunks: list[Chunk]
    sources: set[str]
    unread: dict[str, str]
    lacking: set[str]
    texts: dict[str | None, SourceText]


def _locate(judged: _Judged, sample: _Sample, read_source: Callable[[str], str]) -> _LocatedChunks:
    """Locate chunks of uncertain order in the text of their source."""
    chunks = sample.chunks
    result = _LocatedChunks(list(chunks), set(), {}, set(), {})
    for group in judged.placed.groups.values():
        name = group[0].source
        if name is None or len(group) < 2 or not (name in judged.problems or stamped_by_store(group)):
            continue
        try:
            text = SourceText(read_source(name))
        except Exception as error:  # noqa: BLE001 - the caller's function can raise anything
            result.unread[name] = masked_error(error)
            continue
        listing = sample.listings[name]
        given = [changed(chunks[chunk.rank], source=name) for chunk in group]
        # If the text lacks chunks, it is another version, or the chunks are of several versions.
        in_sequence = listing.in_insertion_order and all(text.places(chunk.text) for chunk in given)
        order = order_of(Listing(given, in_sequence, complete=True, store=listing.name), None, text)
        if listing.parent is not None:
            result.texts[name] = text
        if any(at.span is None and not text.places(chunk.text) for chunk, at in zip(given, order.places, strict=True)):
            result.lacking.add(name)
        if any(at.span is not None for at in order.places):
            result.sources.add(name)
            for chunk, at in zip(given, order.places, strict=True):
                result.chunks[chunk.rank] = changed(chunks[chunk.rank], place=at)
    return result


def _key_of(chunk: Chunk) -> Any:
    """Return a sort key for the chunks of a source; chunks without a position sort last."""
    known = chunk.position if chunk.position is not None and chunk.position.known else UNKNOWN_POSITION
    return known is UNKNOWN_POSITION, known.key, chunk.rank


def _checks(
    judged: _Judged, remedies: Callable[[Sequence[Chunk]], Remedies], lacking: Collection[str | None]
) -> tuple[list[SourceCheck], dict[str | None, list[int]]]:
    """Return the check of each source and the ranks of its duplicates; chunks without a source form one source."""
    groups: dict[str | None, list[Chunk]] = {}
    for group in judged.placed.groups.values():
        groups.setdefault(group[0].source, []).extend(group)
    reports: dict[str | None, SourceReport] = {report.source: report for report in judged.placed.sources}
    unnamed = len(groups.get(None, ()))
    reports[None] = SourceReport(None, PositionKind.NONE, "", unnamed, unnamed)
    in_order = {name: _in_order(group) for name, group in groups.items()}
    near = _near_duplicates(judged.placed.chunks, in_order)
    checks: list[SourceCheck] = []
    repeated: dict[str | None, list[int]] = {}
    for name, group in groups.items():
        report, distinct, problem = reports[name], in_order[name], judged.problems.get(name)
        as_read = [judged.chunks[chunk.rank] for chunk in group]
        contradictory = _contradictory(group, as_read, report)
        cause = "" if problem is None else problem.cause
        again = _ranks_added_again(group)
        if problem is not None and (
            (again and report.kind not in _EXACT)
            or _has_another_version(group, distinct, near)
            or _are_of_two_versions(group, near)
            or (name in lacking and report.missing)
        ):
            cause = ADDED_AGAIN
            if problem.cause != cause:
                why = _NOT_IN_TEXT if name in lacking else cause
                problem = _Problem(f"the order of the chunks of a source is uncertain: {why}", cause)
        if problem is not None and cause != ADDED_AGAIN and _of_several_files(group):
            cause = SHARED_NAME
            problem = _Problem(cause, cause)
        forced = cause == ADDED_AGAIN and not again and name not in lacking
        ingestions = max(_ingestions(group), 2 if forced else 1)
        once = [chunk for chunk in group if chunk.rank not in again]
        repeated[name] = sorted({*again, *_repeated(once, max(_ingestions(once), 2 if forced else 1))})
        later = set(repeated[name])
        copied = name is not None and _is_copied(group, as_read, later, ingestions)
        remedy = ""
        if problem is not None:
            lines = remedies(as_read)
            remedy = (
                lines.deletion(name, copied=copied)
                if cause == ADDED_AGAIN
                else lines.against(cause, as_read, contradictory=contradictory > 0)
            )
        texts = [chunk.text for chunk in distinct]
        checks.append(
            SourceCheck(
                source=name,
                chunks=len(group),
                kind=report.kind,
                field=report.field,
                certainty=_certainty(judged.certainties.get(name, "unknown"), problem),
                missing=report.missing,
                duplicates=len(repeated[name]),
                contradictory=contradictory,
                ingestions=ingestions,
                orderable_pairs=_orderable_pairs(distinct, report),
                repeated_text=sum(overlaps_of(texts)) / (sum(map(len, texts)) or 1),
                near_duplicates=sum(chunk.rank in near for chunk in group),
                problem="" if problem is None else without_keys(problem.what),
                remedy=remedy,
                ids=tuple(chunk.id for chunk in group if chunk.id is not None),
                duplicate_ids=tuple(chunk.id for chunk in group if chunk.id is not None and chunk.rank in later),
                is_copied=copied,
            )
        )
    return checks, repeated


def _certainty(of_all: Certainty, problem: _Problem | None) -> Certainty:
    """Return how certain retrieval is of the order; it may find a problem where all chunks together have none."""
    return "unknown" if problem is not None and of_all == "known" else of_all


def _repeated(group: Sequence[Chunk], ingestions: int) -> list[int]:
    """Return the ranks of chunks that duplicate an earlier one.

    Equal text elsewhere in the source is not a duplicate. Positions that are not exact do not tell whether two places
    differ, so a chunk is a duplicate there only if the whole source was added again.

    Args:
        group: The chunks of one source, without parts of it that were added again.
        ingestions: How often the whole source was added.
    """
    names = {chunk.rank: _identity(chunk) for chunk in sorted(group, key=attrgetter("rank"))}
    exact = _exact_ranks(group, _UNIQUE)
    times = Counter(names.values())
    seen: Counter[tuple[Any, ...]] = Counter()
    repeated: list[int] = []
    for rank, name in names.items():
        # A source that was added twice may itself contain a text several times.
        limit = 1 if rank in exact else max(1, times[name] // ingestions)
        if seen[name] >= limit:
            repeated.append(rank)
        seen[name] += 1
    return repeated


def _exact_ranks(group: Sequence[Chunk], kinds: Collection[PositionKind] = _EXACT) -> set[int]:
    """Return the ranks of chunks whose position identifies one place; none if chunks share a `position_key`."""
    known = [chunk for chunk in group if chunk.position is not None and chunk.position.known]
    if shared(known, [chunk.position and chunk.position.key for chunk in known]):
        return set()
    return {chunk.rank for chunk in group if chunk.position is not None and chunk.position.kind in kinds}


def _ranks_added_again(group: Sequence[Chunk]) -> set[int]:
    """Return the ranks of parts that were added again: an ingestion was interrupted, or a part of it was repeated."""
    left = [(_identity(chunk), chunk.rank) for chunk in sorted(group, key=attrgetter("rank"))]
    placed = all(chunk.position is not None and chunk.position.kind in _PLACED for chunk in group)
    again: set[int] = set()
    for _ in range(_MAX_TRIES):
        part = _part_added_again([name for name, _ in left], placed=placed)
        if part is None:
            break
        again.update(rank for _, rank in left[part])
        del left[part]
    return again


def _part_added_again(names: Sequence[tuple[Any, ...]], *, placed: bool) -> slice | None:
    """Return the part of a list that repeats all of the list before it, or the end of a list if it repeats a part.

    Args:
        names: What identifies each chunk.
        placed: Whether this includes a place; otherwise, only an end that repeats the start was added again, because a
            source may end with a refrain or with a copy of one of its parts.
    """
    starts = (at for at in range(_MIN_REPEATED, len(names) // 2 + 1) if names[at] == names[0])
    parts = [slice(at, 2 * at) for at in islice(starts, _MAX_TRIES) if names[:at] == names[at : 2 * at]]
    ends = (at for at in range(len(names) - _MIN_REPEATED, 0, -1) if names[at - 1] == names[-1])
    for at in islice(ends, _MAX_TRIES):
        pairs = zip(reversed(names[:at]), reversed(names[at:]), strict=False)
        parts.append(slice(len(names) - sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), len(names)))
    parts = [part for part in parts if placed or names[part.start] == names[0]]
    # Fewer different texts may come from a source that repeats itself.
    return next((part for part in parts if len(set(names[part])) >= _MIN_REPEATED), None)


def _is_copied(group: Sequence[Chunk], as_read: Sequence[Chunk], later: Collection[int], ingestions: int) -> bool:
    """Return whether deleting the duplicates alone certainly leaves each chunk of one ingestion, and nothing else.

    Without exact positions, this is certain only if the list is one ingestion after the other. Copies have the same
    metadata: those of several tenants differ. Links must not lead to deleted chunks, and a document must not be left in
    part.
    """
    in_sequence = sorted(group, key=attrgetter("rank"))
    names = [_identity(chunk) for chunk in in_sequence]
    once = names[: len(names) // ingestions]
    repeats = ingestions > 1 and len(set(once)) >= _MIN_REPEATED and names == once * ingestions
    if not later or not (repeats or len(_exact_ranks(group)) == len(group)):
        return False
    first: dict[tuple[Any, ...], str] = {}
    if any(
        first.setdefault(name, about) != about
        for name, about in zip(names, map(_metadata_of, in_sequence), strict=True)
    ):
        return False
    deleted = [chunk for chunk, before in zip(as_read, group, strict=True) if before.rank in later]
    left = [chunk for chunk, before in zip(as_read, group, strict=True) if before.rank not in later]
    ids = [chunk.id for chunk in group]
    # Chunks that were not read from a store have no ids.
    are_unique = len(set(ids)) == len(ids) or set(ids) == {None}
    deleted_ids = {chunk.id for chunk in deleted if chunk.id is not None}
    linked = {to for chunk in left for to in (chunk.previous_id, chunk.next_id, chunk.parent_id, *chunk.child_ids)}
    documents = {chunk.document_id for chunk in left}
    whole = len(documents) == 1 or documents.isdisjoint(chunk.document_id for chunk in deleted)
    return whole and linked.isdisjoint(deleted_ids) and are_unique


def _metadata_of(chunk: Chunk) -> str:
    """Return the metadata that two copies of a chunk share; stores add keys that begin with an underscore."""
    others = sorted((str(name), repr(value)) for name, value in chunk.metadata.items() if name != NUMBERING_FIELD)
    return repr([(name, value) for name, value in others if not name.startswith("_")])


def _of_several_files(group: Sequence[Chunk]) -> bool:
    """Return whether documents with different texts have the same page label; if most are equal, they are versions."""
    pages: dict[str, dict[str, set[str]]] = {}
    for chunk in group:
        if LABEL_FIELD in chunk.metadata and chunk.document_id is not None:
            documents = pages.setdefault(str(chunk.metadata[LABEL_FIELD]), {})
            documents.setdefault(chunk.document_id, set()).add(chunk.text)
    common = [set.intersection(*documents.values()) for documents in pages.values() if len(documents) > 1]
    return 2 * sum(not texts for texts in common) > len(common)


def _identity(chunk: Chunk) -> tuple[Any, ...]:
    """Return a key that duplicates of a chunk share: its text, and its position if its kind is precise enough."""
    position = chunk.position
    if not chunk.text:
        # Images of a page have no text.
        return chunk.source, chunk.text, chunk.rank
    if position is None or position.kind not in _PLACED:
        return chunk.source, chunk.text
    # With ties broken by the store, compare the page alone.
    return chunk.source, chunk.text, position.key[0] if position.field.endswith(TIES_BY_STORE) else position.key


def _in_order(group: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks of one source in order, without duplicates; chunks without a position come last."""
    distinct: dict[tuple[Any, ...], Chunk] = {}
    for chunk in group:
        distinct.setdefault(_identity(chunk), chunk)
    return list(distinct.values()) if group[0].source is None else sorted(distinct.values(), key=_key_of)


def _orderable_pairs(chunks: Sequence[Chunk], report: SourceReport) -> float:
    """Return the share of pairs of chunks whose order is known."""
    if len(chunks) < 2:
        return 1.0
    keys = [chunk.position.key for chunk in chunks if chunk.position is not None and chunk.position.known]
    # The relative order of two runs of links is unknown.
    runs = Counter(key[0] if report.kind is PositionKind.LINKS else None for key in keys)
    known = 0 if report.source is None else _pairs(runs.values()) - _pairs(Counter(keys).values())
    return known / _pairs([len(chunks)])


def _pairs(numbers: Iterable[int]) -> int:
    return sum(number * (number - 1) // 2 for number in numbers)


def _contradictory(group: Sequence[Chunk], as_read: Sequence[Chunk], report: SourceReport) -> int:
    """Count the chunks of a source whose number or offset is ignored because it contradicts that of other chunks."""
    if report.source is None or report.kind <= PositionKind.STAMPED:
        return 0
    stamped = [
        chunk for chunk in as_read if any(ordinal(chunk.metadata.get(name)) is not None for name in STAMPED_FIELDS)
    ]
    if stamped and order_of(Listing(stamped)).kind is PositionKind.STAMPED:
        stamped = []
    with_offset = [chunk for chunk in as_read if stated_span(chunk) is not None]
    if any(chunk.span is not None for chunk in group):
        with_offset = []
    return len({chunk.rank for chunk in (*stamped, *with_offset)})


def _ingestions(group: Sequence[Chunk]) -> int:
    """Estimate how often a source was added: the median number of copies of its chunks."""
    texts = Counter(chunk.text for chunk in group)
    times = median_low(Counter(map(_identity, group)).values()) if len(group) > 1 else 1
    if all(chunk.position is not None and chunk.position.kind in _EXACT for chunk in group):
        # The same text at another place is not a copy: the source repeats itself.
        return times
    return max(times, median_low(texts.values())) if len(texts) >= _MIN_REPEATED else times


def _has_another_version(group: Sequence[Chunk], distinct: Sequence[Chunk], near: Mapping[int, Chunk]) -> bool:
    """Return whether most chunks of a last part of the source repeat its first part, which repeats little itself.

    The parts may differ in size, because the versions may have been split differently.
    """
    first = {chunk.rank for chunk in distinct}
    repeats = [
        chunk.rank not in first or (chunk.rank in near and near[chunk.rank].source == chunk.source)
        for chunk in sorted(group, key=attrgetter("rank"))
    ]
    before = list(accumulate(repeats, initial=0))
    count = len(repeats)
    return any(
        10 * before[start] <= start and 3 * (before[-1] - before[start]) >= 2 * (count - start)
        for start in range(max(_MIN_REPEATED, count // 3), min(count - _MIN_REPEATED, 2 * count // 3) + 1)
    )


def _are_of_two_versions(group: Sequence[Chunk], near: Mapping[int, Chunk]) -> bool:
    """Return whether most chunks without a position form pairs of near-duplicates, in whatever order they are."""
    pairs = {chunk.rank: near[chunk.rank] for chunk in group if chunk.rank in near}
    others = {other.rank for other in pairs.values() if other.source == group[0].source}
    missing = [chunk.rank for chunk in group if chunk.position is None or not chunk.position.known]
    in_pairs = sum(rank in pairs or rank in others for rank in missing)
    return len(missing) >= 2 * _MIN_REPEATED and 3 * in_pairs >= 2 * len(missing) and 10 * len(others) >= 9 * len(pairs)


def _near_duplicates(chunks: Sequence[Chunk], in_order: Mapping[str | None, Sequence[Chunk]]) -> dict[int, Chunk]:
    """Map the rank of each near-duplicate to the earlier chunk that contains nearly all of its text."""
    numbers = {chunk.rank: number for number, chunk in enumerate(chain.from_iterable(in_order.values()))}
    # Exact duplicates are counted separately.
    distinct = [chunk for chunk in chunks if chunk.rank in numbers]
    parents = {chunk.id: chunk.parent_id for chunk in distinct}
    parents.update((child, chunk.id) for chunk in distinct for child in chunk.child_ids)

    def related(one: int, other: int) -> bool:
        # Adjacent chunks overlap, and parents contain their children.
        first, second = distinct[one], distinct[other]
        adjacent = first.source == second.source and abs(numbers[first.rank] - numbers[second.rank]) == 1
        return adjacent or _is_inside(first, second, parents) or _is_inside(second, first, parents)

    found = near_duplicates([chunk.text for chunk in distinct], related)
    return {distinct[index].rank: distinct[other] for index, other in found.items()}


def _is_inside(inner: Chunk, outer: Chunk, parents: Mapping[str | None, str | None]) -> bool:
    """Return whether a chunk was split from another one, in one or several steps."""
    above = parents.get(inner.id)
    for _ in range(_MAX_LEVELS):
        if above is None or above == outer.id:
            break
        above = parents.get(above)
    return above is not None and above == outer.id


def _worst_first(check: SourceCheck) -> tuple[Any, ...]:
    return (not check.problem, check.orderable_pairs, -check.chunks, check.source or "")


def _notes(checks: Sequence[SourceCheck], judged: _Judged, located: _LocatedChunks, lines: Remedies) -> Iterator[Note]:
    """Yield findings that do not affect the order."""
    deletions = {check.source: lines.deletion(check.source, copied=check.is_copied) for check in checks}
    again = [check for check in checks if check.duplicates and check.remedy != deletions[check.source]]
    if again:
        number = sum(check.duplicates for check in again)
        were = "was" if number == 1 else "were"
        yield Note(
            f"{counted(number, 'chunk')} of {counted(len(again), 'source')} {were} added more than once, so a search "
            "returns duplicates",
            deletions[again[0].source],
        )
    # Once the store's order was written, nothing else tells that there are several files.
    for group in judged.placed.groups.values():
        if group[0].source not in judged.problems and _of_several_files(group):
            remedy = lines.against(SHARED_NAME, group)
            # The labels of one file may begin again as well.
            if stamped_by_store(group) or "source_key" in remedy:
                yield Note(f"{describe(group[0].source)}: {SHARED_NAME}", remedy)
    if near := sum(check.near_duplicates for check in checks):
        has = "has" if near == 1 else "have"
        yield Note(
            f"{counted(near, 'chunk')} {has} at least 80 % of the text of another chunk",
            lines.retrieval("redundancy_threshold=0.95"),
        )
    with_offsets = {chunk.source for chunk in judged.placed.chunks if chunk.span is not None}
    repeating = [
        check
        for check in checks
        if check.repeated_text >= _MIN_OVERLAP_SHARE
        and check.source not in with_offsets
        # Neighbors in a store are stitched where their texts overlap.
        and check.kind is not PositionKind.STORE
        and not check.problem
    ]
    if repeating and lines.offsets:
        yield Note(
            f"the chunks of {counted(len(repeating), 'source')} overlap, and without offsets a context cannot stitch "
            "them",
            lines.offsets,
        )
    if found := [name for name in located.sources if name not in judged.problems]:
        yield Note(
            f"the order of {counted(len(found), 'source')} is known only from the text that was read",
            lines.writing("read_source=read_source"),
        )
    if located.unread:
        name, why = next(iter(located.unread.items()))
        yield Note(
            f"the text of {counted(len(located.unread), 'source')} cannot be read, such as {describe(name)}: "
            f"{clean(why)}"
        )
