"""Finds the source and position of every retrieved chunk, and warns where the order is uncertain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from oprag.chunk import UNKNOWN_POSITION, Chunk, PositionKind, changed
from oprag.errors import PositionWarning, SourceWarning, UncertainOrderError
from oprag.masking import describe
from oprag.options import ContextOptions
from oprag.positions.fields import NAME_FIELDS, PLACEHOLDERS, READ_FIELDS
from oprag.positions.readings import PositionKey, page_of, stamped_by_store
from oprag.positions.source_order import (
    CONFLICTING_OFFSETS,
    INSERTION_ORDER_ONLY,
    MISSING,
    RESTARTED,
    SHARED_BY_STORE,
    UNLINKED_RUNS,
    Certainty,
    Listing,
    SourceOrder,
    is_strong,
    order_of,
)
from oprag.positions.sources import SourceKey, keys_seen, names_of_parts, source_of, warn_about_key
from oprag.warn import warn, warn_about_some

__all__ = [
    "PARTS",
    "UNNAMED",
    "Doubt",
    "Placed",
    "SourceReport",
    "Undecided",
    "doubts",
    "group_by_source",
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
_STAMP_TOGETHER = (
    "stamp all chunks of a source in one call, after loading and splitting the whole file (in LlamaIndex in one "
    "from_documents() or pipeline.run(), without num_workers), or pass read_source=... to locate the chunks in the "
    "source texts"
)
_NAME_FILES = "if several files share one source name, name each file with source_key=...; otherwise "
_GIVE_INDEX = "if you use OrderPreservingPostprocessor, pass it index=...; otherwise "
_ADD_OFFSETS = "with a LangChain text splitter, set add_start_index=True; otherwise "
_FIXES = (
    "stamp positions at ingestion ({stamp}), write them to the store with write_positions({store}, "
    "read_source=...){trust}, pass the source texts to the retriever with read_source=..., or pass the metadata key "
    "that contains positions with position_key=..."
)
_TRUST = " (or, if nothing was added later, with trust_store_order=True)"


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
    """Chunks with `source`, `position` and `span` filled in.

    Attributes:
        chunks: New objects, best first.
        sources: A report for each source, ordered by best-ranked chunk.
        groups: The chunks of each of these sources, by its name, or by a number for a chunk without a source name.
        orders: The order of the chunks of each source, by the same names.
    """

    chunks: list[Chunk]
    sources: tuple[SourceReport, ...]
    groups: dict[str | int, list[Chunk]]
    orders: dict[str | int, SourceOrder]


def place(chunks: Sequence[Chunk], source_key: SourceKey | None, position_key: PositionKey | None) -> Placed:
    """Find the source and the position of each chunk.

    Chunks whose places were decided from the whole source keep them. Chunks from an earlier context keep their
    positions, because a smaller set could lead to another kind.
    """
    members: dict[str | int, list[int]] = {}
    for index, chunk in enumerate(chunks):
        stated: Any = chunk.source
        for field in NAME_FIELDS:
            if stated is not None:
                break
            stated = chunk.metadata.get(field)
        # Most names are a plain path or title: skipping the call for these saves most of the time.
        plain = type(stated) is str and (stated[:1].isalpha() or stated[:1] == "/") and "t=" not in stated
        plain = plain and stated not in PLACEHOLDERS
        name = stated if plain and source_key is None else source_of(chunk, source_key)
        members.setdefault(index if name is None else name, []).append(index)
    placed: list[Chunk] = list(chunks)
    groups: dict[str | int, list[Chunk]] = {}
    orders: dict[str | int, SourceOrder] = {}
    for name, indices in members.items():
        source = None if isinstance(name, int) else name
        group = [chunks[index] for index in indices]
        order = orders[name] = _order(group, source, position_key)
        for index, chunk, position, span in zip(indices, group, order.positions, order.spans, strict=True):
            placed[index] = changed(chunk, source=source, position=position, span=span)
        groups[name] = [placed[index] for index in indices]
    return Placed(placed, tuple(map(_report, groups.values())), groups, orders)


def _order(group: Sequence[Chunk], source: str | None, position_key: PositionKey | None) -> SourceOrder:
    """Return the order of the chunks of one source, as it was decided before, else from their metadata alone."""
    if position_key is None:
        places = [chunk.place for chunk in group if chunk.place is not None]
        if len(places) == len(group) and len({(place.kind, place.field) for place in places if place.key}) <= 1:
            return SourceOrder.of_places(group, places)
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
    """The chunks of a source of which more should be read than their metadata.

    Attributes:
        chunks: The chunks.
        strong: Whether their metadata determine their order alone.
        in_doubt: Whether the text of the source would tell their order better.
    """

    chunks: list[Chunk]
    strong: bool
    in_doubt: bool


def undecided(placed: Placed, minimum: int = 2) -> list[Undecided]:
    """Return the sources whose order the metadata of these chunks do not determine, or a store's sequence did.

    Args:
        placed: The chunks.
        minimum: Minimum number of chunks; sources with fewer are skipped.
    """
    found: list[Undecided] = []
    for name, group in placed.groups.items():
        if isinstance(name, int) or len(group) < minimum:
            continue
        order = placed.orders[name]
        strong, by_store = is_strong(order), stamped_by_store(group)
        if not strong or by_store:
            doubted = order.uncertain if len(group) == 1 else order.doubts_among(range(len(group)))
            found.append(Undecided(group, strong, bool(doubted) or by_store))
    return found


def group_by_source(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Group placed chunks by source, in order of first appearance; a chunk without a source is its own group."""
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
    in_runs = first.kind is PositionKind.LINKS or first.kind is PositionKind.STORE
    runs = len({position.key[0] for position in known}) if in_runs else 1
    return SourceReport(group[0].source, first.kind, first.field, len(group), len(group) - len(known), runs)


def warn_about(
    placed: Placed, kept: Sequence[Chunk], options: ContextOptions, store: str = ""
) -> tuple[list[Doubt], Certainty]:
    """Warn, once per cause and source, where a key is misspelled or the order of the kept chunks is uncertain.

    Args:
        placed: The retrieved chunks.
        kept: The kept chunks.
        options: The options; `on_uncertain` decides between a warning and an error.
        store: What distinguishes the searched store from others, whose sources may have the same names.

    Returns:
        The doubts, and how certain the order is.

    Raises:
        UncertainOrderError: The order is uncertain, and `on_uncertain="error"`.
    """
    if len(placed.chunks) < 2:
        return [], "known"
    explained = False
    if options.source_key is not None:
        warn_about_key("source_key", options.source_key, placed.chunks)
    if options.position_key is not None:
        explained = warn_about_key("position_key", options.position_key, placed.chunks)
    if options.order != "source":
        return [], "known"
    about_positions, certainty = _about_positions(placed, kept)
    found = [*_doubts_about_sources(placed, options), *about_positions]
    if found and options.on_uncertain == "error":
        raise UncertainOrderError(f'{found[0].what} (on_uncertain="error"); {_advice(found[0])}', found[0].chunks[0])
    for doubt in found if options.on_uncertain == "warn" else ():
        # The warning about the misspelled key covers this already.
        if not (explained and doubt.cause is MISSING):
            _warn(doubt, placed, store)
    return found, "unknown" if any(doubt.cause in {UNNAMED, PARTS} for doubt in found) else certainty


class Doubt(NamedTuple):
    """A reason why the order of some chunks is uncertain.

    Attributes:
        what: The reason, in words.
        cause: The same reason without numbers and names; one of the constants of this module.
        chunks: The affected chunks, from one or several sources.
    """

    what: str
    cause: str
    chunks: Sequence[Chunk]


def doubts(placed: Placed, kept: Sequence[Chunk], options: ContextOptions) -> list[Doubt]:
    """Return all reasons why the order of the kept chunks is uncertain."""
    if options.order != "source" or len(placed.chunks) < 2:
        return []
    return [*_doubts_about_sources(placed, options), *_about_positions(placed, kept)[0]]


def _doubts_about_sources(placed: Placed, options: ContextOptions) -> Iterator[Doubt]:
    """Yield doubts about chunks without a source, and about sources that seem to be parts of one source."""
    unnamed = 0
    alone: list[str] = []
    for report in placed.sources:
        if report.source is None:
            unnamed += 1
        elif report.chunks == 1:
            alone.append(report.source)
    if unnamed:
        yield Doubt(
            f"{unnamed} of {len(placed.chunks)} chunks do not name their source, so each is treated as a separate "
            "source and keeps its rank",
            UNNAMED,
            [chunk for chunk in placed.chunks if chunk.source is None],
        )
    generated = [group for group in placed.groups.values() if options.source_key is None and _is_named_by_id(group)]
    by_id = [group for group in generated if page_of(group[0]) is not None]
    single = [group for group in by_id if len({page_of(chunk) for chunk in group}) == 1]
    # A document of several pages, or two documents that begin with the same page, are whole files.
    if len(single) > 1 and len({page_of(group[0]) for group in single}) == len(single) == len(by_id):
        yield Doubt(
            f"{len(single)} documents are single pages without the name of their file, so the pages are not put in "
            "order",
            UNNAMED,
            list(chain.from_iterable(single)),
        )
    # Readers also make documents of rows and sections.
    only_generated = not by_id and len(generated) == len(placed.groups) >= _MIN_DOCUMENTS
    if only_generated and sum(map(len, generated)) < _MAX_CHUNKS * len(generated):
        yield Doubt(
            f"{len(generated)} documents of few chunks each have no name, so they are not put in order; if they are "
            "parts of one file, such as its rows or sections, name that file",
            UNNAMED,
            list(chain.from_iterable(generated)),
        )
    # A source_key function chooses its names on purpose, so do not question them.
    if alone and not callable(options.source_key) and (parts := names_of_parts(alone)):
        yield Doubt(
            f"{len(parts)} of {len(placed.chunks)} chunks each have a different source, but the names look like parts "
            f"of one source, such as {describe(parts[0])} and {describe(parts[1])}, so their chunks are not put in "
            "order",
            PARTS,
            [chunk for part in parts for chunk in placed.groups[part]],
        )


def _is_named_by_id(group: Sequence[Chunk]) -> bool:
    """Return whether a source has only a generated id as its name, as the pages or rows that readers make."""
    name = group[0].source
    return name is not None and name == group[0].document_id and bool(_UUID.fullmatch(name))


def _about_positions(placed: Placed, kept: Sequence[Chunk]) -> tuple[list[Doubt], Certainty]:
    """Return why the order of sources with several kept chunks is uncertain, and how certain that of all is."""
    causes: dict[str, list[Chunk]] = {}
    worst: Certainty = "known"
    for group in group_by_source(kept):
        order = placed.orders.get(group[0].source or "")
        if len(group) < 2 or order is None:
            continue
        if order.basis == "assumed" and worst == "known":
            worst = "assumed"
        if not order.uncertain:
            continue
        indices = _indices(group, order)
        certainty = order.certainty_among(indices)
        worst = certainty if certainty == "unknown" or worst == "known" else worst
        for cause in order.doubts_among(indices)[:1]:
            causes.setdefault(cause, []).extend(group)
    return [Doubt(cause, cause, chunks) for cause, chunks in causes.items()], worst


def _indices(kept: Sequence[Chunk], order: SourceOrder) -> list[int]:
    """Return the indices of kept chunks in the order of their source; both have the same ranks."""
    ranks = {chunk.rank for chunk in kept}
    return [index for index, chunk in enumerate(order.chunks) if chunk.rank in ranks]


def _warn(doubt: Doubt, placed: Placed, store: str) -> None:
    """Warn once for each cause and source of a store."""
    about_sources = doubt.cause in {UNNAMED, PARTS}
    chunks = placed.chunks if about_sources else doubt.chunks
    if about_sources:
        keys = sorted({key for chunk in chunks for key in chunk.metadata if key in READ_FIELDS})
        message = f"{doubt.what} (metadata keys seen: {keys_seen(chunks)}); {_advice(doubt)}"
        # Chunks of another loader cause another warning.
        warn(message, SourceWarning, f"{doubt.cause} {store}", keys)
        return
    sources = list(dict.fromkeys(chunk.source or "" for chunk in chunks))
    message = f"{doubt.what} (such as {describe(sources[0])}; metadata keys seen: {keys_seen(chunks)}); "
    more = f"{doubt.what}: this concerns more sources of the store; check_positions lists them"
    warn_about_some(message + _advice(doubt), PositionWarning, doubt.cause, group=store, names=sources, more=more)


def _advice(doubt: Doubt) -> str:
    if doubt.cause is UNNAMED:
        llama_index = _frameworks(doubt.chunks) == {"llama_index"}
        stamp = "StampPositions(source=...)" if llama_index else "stamp_positions(documents, source=...)"
        return f"name it with source_key=..., or with {stamp} at ingestion"
    if doubt.cause is PARTS:
        return "set source_key=... to what they share: a metadata key or a function of the chunk"
    if doubt.cause is RESTARTED:
        return _STAMP_TOGETHER
    return _ways_out(doubt)


def _frameworks(chunks: Sequence[Chunk]) -> set[str]:
    # By module name: the core must not import the frameworks.
    return {type(chunk.origin).__module__.partition(".")[0] for chunk in chunks}


def _ways_out(doubt: Doubt) -> str:
    """Describe how to supply positions, using the function names of the chunks' framework."""
    trust = _TRUST if doubt.cause in (INSERTION_ORDER_ONLY, SHARED_BY_STORE) else ""
    frameworks = _frameworks(doubt.chunks)
    if frameworks == {"llama_index"}:
        by_store = any(chunk.place is not None for chunk in doubt.chunks)
        first, stamp, store = "" if by_store else _GIVE_INDEX, "StampPositions", "index"
    else:
        stated = doubt.cause is UNLINKED_RUNS or any("start_index" in chunk.metadata for chunk in doubt.chunks)
        first, stamp, store = "" if stated else _ADD_OFFSETS, "stamp_positions", "store"
    if frameworks.isdisjoint(("llama_index", "langchain_core")):
        stamp = "stamp_positions for LangChain, StampPositions for LlamaIndex"
    if doubt.cause is CONFLICTING_OFFSETS:
        first = _NAME_FILES
    return first + _FIXES.format(stamp=stamp, store=store, trust=trust)
