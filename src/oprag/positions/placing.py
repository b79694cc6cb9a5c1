"""Finding the source and the position of every retrieved chunk, and warning where the order is uncertain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from oprag.chunk import NOWHERE, Chunk, PositionKind, changed
from oprag.errors import PositionWarning, SourceWarning
from oprag.options import ContextOptions
from oprag.positions.ladder import (
    FRAME_FIELDS,
    LOCATED,
    READ_FIELDS,
    TIES_BY_STORE,
    PositionKey,
    find_positions,
    numberings,
    shared,
    stamped_by_store,
    stated_span,
)
from oprag.positions.sources import NAME_FIELDS, SourceKey, keys_seen, names_of_parts, source_of, warn_about_key
from oprag.warn import warn

__all__ = [
    "BY_STORE",
    "MISSING",
    "PARTS",
    "RESTARTED",
    "SHARED_BY_STORE",
    "TIED",
    "TORN",
    "UNNAMED",
    "VOID",
    "Doubt",
    "Placed",
    "SourceReport",
    "doubts",
    "group_by_source",
    "place",
    "report_sources",
    "warn_about",
    "without_order",
]

# The causes of doubt; those about positions say it in words.
UNNAMED = "no source"
PARTS = "sources that are parts"
RESTARTED = "the chunk_index of a source was stamped in several calls, which each start at 0, so it is ignored"
TORN = (
    "the chunks of a source are linked in several runs whose relative order is unknown; the best-ranked run comes first"
)
BY_STORE = (
    "the chunks of a source are in the sequence in which the store received them, which is wrong if some of them were "
    "added later; nothing else tells their order"
)
SHARED_BY_STORE = (
    "chunks of a source share a page or another number, so they are in the sequence in which the store received them, "
    "which is wrong if some of them were added later"
)
MISSING = "chunks of a source have no position, so their place in it is unknown"
TIED = "chunks of a source share a page or another number, so retrieval rank decides their order there"
VOID = (
    "the character offsets of a source contradict each other, as those that restart in every section or file do, so "
    "they are ignored and the order is uncertain"
)

_STAMP_TOGETHER = (
    "stamp all chunks of a source in one call, after the whole file was loaded and split (in LlamaIndex in one "
    "from_documents() or pipeline.run(), without num_workers), or give the texts of the sources: read_source=... finds "
    "chunks in them"
)
_NAME_FILES = "if several files have one source, name each file with source_key=...; otherwise "
_ADD_OFFSETS = "with a LangChain text splitter, set add_start_index=True; otherwise "
_WAYS_OUT = (
    "stamp positions at ingestion ({stamp}), write them into the store with write_positions({store}, "
    "read_source=...){trust}, give the texts of the sources to the retriever with read_source=..., or name the "
    "metadata key that has them with position_key=..."
)
_TRUST = " (or, if nothing was added later, with trust_store_order=True)"


class SourceReport(NamedTuple):
    """How the chunks of one source were placed.

    Attributes:
        source: The name of the source, None for a chunk that does not say.
        kind: How its positions are known.
        field: The metadata keys that they were read from.
        chunks: How many of its chunks were retrieved.
        missing: How many of these have no position.
        runs: How many connected runs their positions form. Under `PositionKind.LINKS` nothing tells how the runs stand
            to each other; under `PositionKind.STORE` only the sequence in which the store received them. Else 1.
    """

    source: str | None
    kind: PositionKind
    field: str
    chunks: int
    missing: int
    runs: int = 1


class Placed(NamedTuple):
    """The chunks with `source`, `position` and `span` filled in.

    Attributes:
        chunks: New objects, best first.
        sources: A report for each source, in the sequence of its best-ranked chunk.
        groups: The chunks of each of these sources; under a number where nothing names it.
    """

    chunks: list[Chunk]
    sources: tuple[SourceReport, ...]
    groups: dict[str | int, list[Chunk]]


def place(chunks: Sequence[Chunk], source_key: SourceKey | None, position_key: PositionKey | None) -> Placed:
    """Find the source and the position of each chunk; the kind is chosen once for each source.

    Chunks of a context that was assembled before keep what was found then, since a smaller set could lead to another
    kind.
    """
    members: dict[str | int, list[int]] = {}
    for index, chunk in enumerate(chunks):
        stated: Any = chunk.source
        for field in NAME_FIELDS:
            if stated is not None:
                break
            stated = chunk.metadata.get(field)
        # Most names are a plain path or title; a call for each of them would take most of the time.
        plain = type(stated) is str and (stated[:1].isalpha() or stated[:1] == "/") and "t=" not in stated
        name = stated if plain and source_key is None else source_of(chunk, source_key)
        members.setdefault(index if name is None else name, []).append(index)
    placed: list[Chunk] = list(chunks)
    groups: dict[str | int, list[Chunk]] = {}
    for name, indices in members.items():
        source = None if isinstance(name, int) else name
        group = [chunks[index] for index in indices]
        before = group[0].position is not None and _placed_before(group, source)
        if before and position_key is None and _read_alike(group):
            group = [changed(chunk) for chunk in group]
        else:
            positions, spans = find_positions(group, position_key)
            group = [
                changed(chunk, source=source, position=position, span=chunk.span if before else span)
                for chunk, position, span in zip(group, positions, spans, strict=True)
            ]
        for index, chunk in zip(indices, group, strict=True):
            placed[index] = chunk
        groups[name] = group
    return Placed(placed, tuple(map(_report, groups.values())), groups)


def _placed_before(group: Sequence[Chunk], source: str | None) -> bool:
    return all(chunk.position is not None and chunk.source == source for chunk in group)


def _read_alike(group: Sequence[Chunk]) -> bool:
    """Whether the positions were read in one way, by the ladder, so that they can be compared."""
    readings = {
        (chunk.position.kind, chunk.position.field) for chunk in group if chunk.position and chunk.position.known
    }
    return len(readings) <= 1 and all(kind is not PositionKind.KEY for kind, _ in readings)


def without_order(placed: Placed, least: int = 2, *, by_store: bool = False) -> list[list[Chunk]]:
    """The chunks of each source whose order is uncertain, if it has at least `least` of them.

    Args:
        placed: The chunks.
        least: Minimum number of chunks.
        by_store: Whether numbers that were written from the sequence of a store are uncertain.
    """
    return [
        group
        for group, report in zip(placed.groups.values(), placed.sources, strict=True)
        if report.source is not None
        and len(group) >= least
        and (_cause_of_doubt(group, report, group) is not None or (by_store and stamped_by_store(group)))
    ]


def _has_ties(group: Sequence[Chunk], report: SourceReport) -> bool:
    """Whether retrieval rank decides the order of some of the chunks of one source."""
    by_page = report.kind is PositionKind.PAGE
    return by_page and shared(group, [chunk.position and chunk.position.key for chunk in group])


def group_by_source(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Placed chunks by source, in the sequence of each source's first chunk; a chunk without a source stands alone."""
    groups: dict[str | int, list[Chunk]] = {}
    for index, chunk in enumerate(chunks):
        groups.setdefault(index if chunk.source is None else chunk.source, []).append(chunk)
    return list(groups.values())


def report_sources(chunks: Sequence[Chunk]) -> tuple[SourceReport, ...]:
    """How placed chunks were placed, by source."""
    return tuple(map(_report, group_by_source(chunks)))


def _report(group: Sequence[Chunk]) -> SourceReport:
    """How the chunks of one source were placed."""
    unknown = PositionKind.NONE  # in Python 3.11, looking up an enum member is a call
    known = [chunk.position for chunk in group if chunk.position is not None and chunk.position.kind is not unknown]
    first = known[0] if known else NOWHERE
    in_runs = first.kind is PositionKind.LINKS or first.kind is PositionKind.STORE
    runs = len({position.key[0] for position in known}) if in_runs else 1
    return SourceReport(group[0].source, first.kind, first.field, len(group), len(group) - len(known), runs)


def warn_about(placed: Placed, kept: Sequence[Chunk], options: ContextOptions) -> None:
    """Warn where a key is misspelt or the order of the kept chunks is unknown; once for each cause."""
    if len(placed.chunks) < 2:
        return
    explained = False
    if options.source_key is not None:
        warn_about_key("source_key", options.source_key, placed.chunks)
    if options.position_key is not None:
        explained = warn_about_key("position_key", options.position_key, placed.chunks)
    for doubt in doubts(placed, kept, options):
        # A misspelt key was told already.
        if not (explained and doubt.cause is MISSING):
            _warn(doubt, placed)


class Doubt(NamedTuple):
    """Why the order of some chunks is not certain.

    Attributes:
        what: The reason, in words.
        cause: The same without numbers and names; one of the constants of this module.
        chunks: The chunks, of one or several sources.
    """

    what: str
    cause: str
    chunks: Sequence[Chunk]


def doubts(placed: Placed, kept: Sequence[Chunk], options: ContextOptions) -> list[Doubt]:
    """Each reason for which the order of the kept chunks is not certain."""
    if options.order != "source" or len(placed.chunks) < 2:
        return []
    return [*_doubts_about_sources(placed, options), *_doubts_about_positions(placed, kept, options)]


def _doubts_about_sources(placed: Placed, options: ContextOptions) -> Iterator[Doubt]:
    """Chunks without a source, and sources that seem to be parts of one."""
    unnamed = 0
    alone: list[str] = []
    for report in placed.sources:
        if report.source is None:
            unnamed += 1
        elif report.chunks == 1:
            alone.append(report.source)
    if unnamed:
        yield Doubt(
            f"{unnamed} of {len(placed.chunks)} chunks do not say which source they came from, so each counts as a "
            "source of its own and keeps its rank",
            UNNAMED,
            [chunk for chunk in placed.chunks if chunk.source is None],
        )
    # A function names what it wants to name.
    if alone and not callable(options.source_key) and (parts := names_of_parts(alone)):
        yield Doubt(
            f"{len(parts)} of {len(placed.chunks)} chunks have a source of their own each, and these names seem to be "
            f"parts of one source, such as {parts[0]!r} and {parts[1]!r}, so their chunks are not put in order",
            PARTS,
            [chunk for part in parts for chunk in placed.groups[part]],
        )


def _doubts_about_positions(placed: Placed, kept: Sequence[Chunk], options: ContextOptions) -> list[Doubt]:
    """Each reason for which the order of a source with several kept chunks is not certain."""
    causes: dict[str, list[Chunk]] = {}
    for group in group_by_source(kept):
        if len(group) < 2:
            continue
        report = _report(group)
        if options.position_key is None:
            cause = _cause_of_doubt(group, report, placed.groups.get(report.source or "", group))
        else:
            cause = MISSING if report.missing else None
        if cause is not None:
            causes.setdefault(cause, []).extend(group)
    return [Doubt(cause, cause, chunks) for cause, chunks in causes.items()]


def _warn(doubt: Doubt, placed: Placed) -> None:
    """Warn once for each cause, and again where chunks of another loader have it."""
    about_sources = doubt.cause in (UNNAMED, PARTS)
    chunks = placed.chunks if about_sources else doubt.chunks
    keys = sorted({key for chunk in chunks for key in chunk.metadata if key in READ_FIELDS})
    category = SourceWarning if about_sources else PositionWarning
    warn(f"{doubt.what} (metadata keys seen: {keys_seen(chunks)}); {_cure(doubt)}", category, doubt.cause, keys)


def _cure(doubt: Doubt) -> str:
    if doubt.cause is UNNAMED:
        return "name it with source_key=..., or with stamp_positions(documents, source=...) at ingestion"
    if doubt.cause is PARTS:
        return "name what they share with source_key=..., a metadata key or a function of the chunk"
    if doubt.cause is RESTARTED:
        return _STAMP_TOGETHER
    return _ways_out(doubt)


def _ways_out(doubt: Doubt) -> str:
    """The ways out of missing positions, by their names in the framework of the chunks."""
    trust = _TRUST if doubt.cause in (BY_STORE, SHARED_BY_STORE) else ""
    # A core that knew the frameworks would load them.
    frameworks = {type(chunk.origin).__module__.partition(".")[0] for chunk in doubt.chunks}
    if frameworks == {"llama_index"}:
        first, stamp, store = "", "StampPositions", "index"
    else:
        stated = doubt.cause is TORN or any("start_index" in chunk.metadata for chunk in doubt.chunks)
        first, stamp, store = "" if stated else _ADD_OFFSETS, "stamp_positions", "store"
    if frameworks.isdisjoint(("llama_index", "langchain_core")):
        stamp = "stamp_positions for LangChain, StampPositions for LlamaIndex"
    if doubt.cause is VOID:
        first = _NAME_FILES
    return first + _WAYS_OUT.format(stamp=stamp, store=store, trust=trust)


def _cause_of_doubt(group: Sequence[Chunk], report: SourceReport, retrieved: Sequence[Chunk]) -> str | None:
    """Why the order of the kept chunks of one source is not certain, as a message; None where it is.

    What contradicts it may be among the retrieved chunks that were not kept.
    """
    in_store = report.kind is PositionKind.STORE
    by_metadata = not in_store and report.field != LOCATED
    # Whatever other metadata are taken, they can be the wrong ones: offsets restart where stamps do.
    if report.kind > PositionKind.STAMPED and by_metadata and len(numberings(retrieved)) > 1:
        return RESTARTED
    if report.runs > 1:
        return BY_STORE if in_store else TORN
    by_page = report.kind is PositionKind.PAGE and report.field in FRAME_FIELDS
    if (report.missing or by_page) and _ignored_offsets(retrieved):
        return VOID
    if report.missing:
        return MISSING
    if report.field.endswith(TIES_BY_STORE):
        pages = {
            (chunk.position.key[0], chunk.store_place.run) for chunk in group if chunk.position and chunk.store_place
        }
        return SHARED_BY_STORE if len(pages) > len({page for page, _ in pages}) else None
    return TIED if _has_ties(group, report) else None


def _ignored_offsets(chunks: Sequence[Chunk]) -> bool:
    """Whether some of the chunks state offsets, and all of these were ignored since they contradict each other."""
    return all(chunk.span is None for chunk in chunks) and any(stated_span(chunk) is not None for chunk in chunks)
