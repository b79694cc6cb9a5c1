"""Finds the source and position of every retrieved chunk, and warns where the order is uncertain."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from oprag._internal.masking import shown
from oprag._internal.warn import warn_about_some
from oprag.chunk import UNKNOWN_POSITION, Chunk, PositionKind, changed, counted
from oprag.errors import OpragWarning, PositionWarning, SourceWarning, UncertainOrderError
from oprag.options import ContextOptions, PositionKey, SourceKey
from oprag.positions.fields import NAME_FIELDS, PLACEHOLDERS, READ_FIELDS
from oprag.positions.readings import page_of, stamped_by_store
from oprag.positions.source_names import names_of_parts, names_spelled_differently, source_of, warn_about_key
from oprag.positions.source_order import MISSING, Certainty, Listing, Offsets, SourceOrder, is_strong, order_of

__all__ = [
    "PARTS",
    "UNNAMED",
    "Doubt",
    "Placed",
    "SearchedStore",
    "SourceReport",
    "Undecided",
    "about_sources",
    "group_by_source",
    "order_of_found",
    "place",
    "report_sources",
    "undecided",
    "warn_about",
]

# Causes of doubt about sources; those about positions are in `source_order`.
UNNAMED = "no source"
PARTS = "sources that are parts"

# Documents without a name that may be parts of one file; fewer may be what the user has.
_MIN_DOCUMENTS = 4
_MAX_CHUNKS = 2  # on average, in each of them
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ABOUT_SOURCES = (UNNAMED, PARTS)
_MAX_LENGTH = 200  # characters of a warning
_SOURCE = attrgetter("source")


class SourceReport(NamedTuple):
    """How the positions of the chunks of one source were determined.

    Attributes:
        source: Name of the source; None for a chunk that does not name one.
        kind: How the positions are known.
        field: The metadata keys that the positions were read from.
        chunks: Number of retrieved chunks.
        missing: Number of chunks without a position.
        runs: Number of connected runs that the positions form. With `PositionKind.LINKS` the relative order of the runs
            is unknown; with `PositionKind.STORE` only insertion order tells it. 1 for all other kinds.
    """

    source: str | None
    kind: PositionKind
    field: str
    chunks: int
    missing: int
    runs: int = 1


class Placed(NamedTuple):
    """Chunks with `source`, `position` and `span` filled in, also by source; a number names one without a source."""

    chunks: list[Chunk]  # new objects, best first
    sources: tuple[SourceReport, ...]  # ordered by best-ranked chunk, as the groups
    groups: dict[str | int, list[Chunk]]
    orders: dict[str | int, SourceOrder]


class SearchedStore(NamedTuple):
    """The store that was searched, for warnings."""

    id: str = ""  # tells it from others, whose sources may have the same names
    check: str = ""  # the call that checks its positions; empty if its chunks cannot be listed
    option: str = "position_key"  # that tells the order otherwise


def place(chunks: Sequence[Chunk], source_key: SourceKey | None, position_key: PositionKey | None) -> Placed:
    """Find the source and the position of each chunk; places and positions that were found before are kept."""
    members: dict[str | int, list[int]] = {}
    plain: set[str] = set()
    for index, chunk in enumerate(chunks):
        stated: Any = chunk.source
        for field in NAME_FIELDS:
            if stated is not None:
                break
            stated = chunk.metadata.get(field)
        # Most names are a plain path or title: skipping the call for these saves most of the time.
        if source_key is None and type(stated) is str and (stated in plain or _is_plain(stated)):
            plain.add(stated)
        else:
            stated = source_of(chunk, source_key)
        members.setdefault(index if stated is None else stated, []).append(index)
    placed: list[Chunk] = list(chunks)
    groups: dict[str | int, list[Chunk]] = {}
    orders: dict[str | int, SourceOrder] = {}
    for name, indices in members.items():
        source = None if isinstance(name, int) else name
        group = [chunks[index] for index in indices]
        order = orders[name] = order_of_found(group, source, position_key)
        for index, chunk, position, span in zip(indices, group, order.positions, order.spans, strict=True):
            placed[index] = changed(chunk, source=source, position=position, span=span)
        groups[name] = [placed[index] for index in indices]
    return Placed(placed, tuple(map(_report, groups.values())), groups, orders)


def _is_plain(name: str) -> bool:
    """Return whether this is the name of a source, without a page or time in it."""
    return (name[:1].isalpha() or name[:1] == "/") and "t=" not in name and name not in PLACEHOLDERS


def order_of_found(group: Sequence[Chunk], source: str | None, position_key: PositionKey | None = None) -> SourceOrder:
    """Return the order of retrieved chunks of a source, as it was decided before, else from their metadata alone."""
    if position_key is None:
        places = [chunk.place for chunk in group if chunk.place is not None]
        if len(places) == len(group) and len({(place.kind, place.field) for place in places if place.key}) <= 1:
            return SourceOrder.of_places(group, places)
        if offsets := Offsets.of(group):
            return offsets.order
    order = order_of(Listing(group), position_key)
    before = [chunk.position for chunk in group if chunk.position is not None and chunk.source == source]
    if len(before) < len(group):
        return order
    # The chunks that an earlier context dropped may have shown more.
    order = order._replace(spans=[chunk.span for chunk in group])
    readings = {(position.kind, position.field) for position in before if position.known}
    if position_key is not None or len(readings) > 1 or any(kind is PositionKind.KEY for kind, _ in readings):
        return order
    kind, field = next(iter(readings), (PositionKind.NONE, ""))
    return order._replace(kind=kind, field=field, keys=[position.key or None for position in before])


class Undecided(NamedTuple):
    """The chunks of a source of which more should be read than their metadata."""

    chunks: list[Chunk]
    strong: bool  # whether their metadata determine their order alone
    in_doubt: bool  # whether the text of the source would tell their order better


def undecided(placed: Placed, minimum: int = 2) -> list[Undecided]:
    """Return the sources with at least `minimum` chunks of which a text or store may tell more than their metadata."""
    found: list[Undecided] = []
    for name, group in placed.groups.items():
        if isinstance(name, int) or len(group) < minimum:
            continue
        order = placed.orders[name]
        strong = is_strong(order)
        by_store = order.kind is PositionKind.STAMPED and stamped_by_store(group)
        if not strong or by_store:
            # As they were retrieved: the page of a placed span was read from the metadata, which would confirm it.
            chunks = [changed(chunk, source=name) for chunk in order.chunks]
            found.append(Undecided(chunks, strong, bool(order.uncertain) or by_store))
    return found


def group_by_source(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Group placed chunks by source, in order of first appearance; a chunk without a source is its own group."""
    if len(set(map(_SOURCE, chunks))) == 1 and chunks[0].source is not None:
        return [list(chunks)]
    groups: dict[str | int, list[Chunk]] = {}
    for index, chunk in enumerate(chunks):
        groups.setdefault(index if chunk.source is None else chunk.source, []).append(chunk)
    return list(groups.values())


def report_sources(chunks: Sequence[Chunk]) -> tuple[SourceReport, ...]:
    """Report for each source how the positions of its placed chunks were determined."""
    return tuple(map(_report, group_by_source(chunks)))


def _report(group: Sequence[Chunk]) -> SourceReport:
    """Report how the positions of the chunks of one source were determined."""
    unknown = PositionKind.NONE  # hoisted: in Python 3.11, looking up an enum member is a function call
    known = [chunk.position for chunk in group if chunk.position is not None and chunk.position.kind is not unknown]
    first = known[0] if known else UNKNOWN_POSITION
    in_runs = first.kind in (PositionKind.LINKS, PositionKind.STORE)
    runs = len({position.key[0] for position in known}) if in_runs else 1
    return SourceReport(group[0].source, first.kind, first.field, len(group), len(group) - len(known), runs)


class Doubt(NamedTuple):
    """A reason why the order of some chunks is uncertain."""

    what: str
    cause: str  # the same without numbers and names
    chunks: Sequence[Chunk]  # from one or several sources


def warn_about(
    placed: Placed, kept: Sequence[Chunk], options: ContextOptions, store: Callable[[], SearchedStore] = SearchedStore
) -> tuple[list[Doubt], Certainty]:
    """Warn or raise where the order of the kept chunks is uncertain; return the doubts, and how certain it is."""
    if len(placed.chunks) < 2:
        return [], "known"
    explained = False
    if options.source_key is not None or options.position_key is not None:
        warn_about_key("source_key", options.source_key, placed.chunks)
        explained = warn_about_key("position_key", options.position_key, placed.chunks)
    if options.order != "source":
        return [], "known"
    found = list(about_sources(placed, options))
    about_positions, certainty = _about_positions(placed, kept)
    certainty = "unknown" if found else certainty
    found += about_positions
    for doubt in found if options.on_uncertain != "ignore" else ():
        searched = store()
        action = _action(doubt, searched, options)
        if options.on_uncertain == "error":
            raise UncertainOrderError(_message(doubt, action), doubt.chunks[0])
        # The warning about the misspelled key covers this already.
        if not (explained and doubt.cause is MISSING):
            _warn(doubt, action, searched.id)
    return found, certainty


def about_sources(placed: Placed, options: ContextOptions) -> Iterator[Doubt]:
    """Yield doubts about chunks without a source, and about sources that seem to be parts of one source."""
    total = len(placed.chunks)
    unnamed = [group[0] for name, group in placed.groups.items() if isinstance(name, int)]
    if unnamed and total > 1:
        what = f"{len(unnamed)} of {total} chunks do not name their source, so they are not put in order"
        yield Doubt(what, UNNAMED, unnamed)
    if options.source_key is None and (nameless := _parts_of_a_file(placed)):
        what = f"{len(nameless)} documents without a name are not put in order, although they may be parts of one file"
        yield Doubt(what, UNNAMED, list(chain.from_iterable(nameless)))
    if callable(options.source_key) or len(placed.groups) < 2:
        # A function chooses its names on purpose, so do not question them.
        return
    named = {name: group for name, group in placed.groups.items() if isinstance(name, str)}
    for alike, reason in (
        (names_of_parts(name for name in named if len(named[name]) == 1), "their sources look like parts of one"),
        (names_spelled_differently(named), "the names of their sources differ only in spelling"),
    ):
        if alike:
            chunks = [chunk for name in alike for chunk in named[name]]
            yield Doubt(f"{len(chunks)} of {total} chunks are not put in order, although {reason}", PARTS, chunks)


def _parts_of_a_file(placed: Placed) -> list[list[Chunk]]:
    """Return the documents that have only a generated id as their name, and seem to be parts of one file."""
    groups = placed.groups.items()
    nameless = [group for name, group in groups if name == group[0].document_id and _UUID.fullmatch(str(name))]
    paged = [group for group in nameless if page_of(group[0]) is not None]
    if paged:
        # A document of several pages, or two documents with the same page, are whole files.
        pages = [{page_of(chunk) for chunk in group} for group in paged]
        return paged if sum(map(len, pages)) == len(set().union(*pages)) == len(paged) > 1 else []
    # Readers make documents of rows and sections.
    few_chunks = sum(map(len, nameless)) < _MAX_CHUNKS * len(nameless)
    return nameless if few_chunks and len(nameless) == len(placed.groups) >= _MIN_DOCUMENTS else []


def _about_positions(placed: Placed, kept: Sequence[Chunk]) -> tuple[list[Doubt], Certainty]:
    """Return why the order of sources with several kept chunks is uncertain, and how certain that of all is."""
    causes: dict[str, list[Chunk]] = {}
    found: set[Certainty] = set()
    for group in group_by_source(kept):
        order = placed.orders.get(group[0].source or "")
        if len(group) < 2 or order is None:
            continue
        doubts: Collection[str] = ()
        if order.uncertain:
            # Both have the same ranks.
            ranks = {chunk.rank for chunk in group}
            doubts = order.doubts_among([index for index, chunk in enumerate(order.chunks) if chunk.rank in ranks])
        found.add(order.certainty_with(doubts))
        for cause in islice(doubts, 1):
            causes.setdefault(cause, []).extend(group)
    certainty: Certainty = "unknown" if "unknown" in found else "assumed" if "assumed" in found else "known"
    return [Doubt(cause, cause, chunks) for cause, chunks in causes.items()], certainty


def _warn(doubt: Doubt, action: str, store: str) -> None:
    """Warn once for each cause and source of the store with this id."""
    category: type[OpragWarning] = PositionWarning
    names = {chunk.source or "": None for chunk in doubt.chunks}
    if doubt.cause in _ABOUT_SOURCES:
        # The names are not known, but chunks of another loader have other fields.
        fields = READ_FIELDS.intersection(chain.from_iterable(chunk.metadata for chunk in doubt.chunks))
        category, names = SourceWarning, dict.fromkeys(["", *fields])
    more = f"{doubt.what}; more sources are affected; {action}"
    warn_about_some(_message(doubt, action), category, doubt.cause, group=store, names=names, more=more)


def _message(doubt: Doubt, action: str) -> str:
    """Say what is wrong, in which source, and what to do, in at most 200 characters."""
    names = list(dict.fromkeys(chunk.source for chunk in doubt.chunks if chunk.source is not None))
    more = f" and {counted(len(names) - 1, 'more source')}" if len(names) > 1 else ""
    room = _MAX_LENGTH - len(f"{doubt.what} ({more}); {action}")
    where = f" ({shown(names[0], room, repr, end=True)}{more})" if names else ""
    return f"{doubt.what}{where}; {action}"


def _action(doubt: Doubt, store: SearchedStore, options: ContextOptions) -> str:
    """Return one call or option that helps."""
    if doubt.cause is MISSING and options.position_key is not None:
        return "check the values of position_key"
    if doubt.cause is UNNAMED and options.source_key is not None:
        return "check the values of source_key"
    option = "source_key" if doubt.cause in _ABOUT_SOURCES else store.option
    # An earlier search decided places from a store.
    decided = option == "position_key" and any(chunk.place is not None for chunk in doubt.chunks)
    check = store.check or ("check_positions(store)" if decided else "")
    return f"{check} shows the fix" if check else f"pass {option}=..."
