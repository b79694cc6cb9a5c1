"""Finds the source and position of every retrieved chunk, and warns where the order is uncertain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from oprag.chunk import UNKNOWN_POSITION, Chunk, PositionKind, changed
from oprag.errors import PositionWarning, SourceWarning
from oprag.masking import describe
from oprag.options import ContextOptions
from oprag.positions.fields import LABEL_FIELD, NAME_FIELDS, PLACEHOLDERS, READ_FIELDS
from oprag.positions.ladder import (
    FRAME_FIELDS,
    LOCATED,
    TIES_BY_STORE,
    PositionKey,
    find_positions,
    is_confirmed,
    numberings,
    page_of,
    shared,
    stamped_by_store,
    stated_span,
)
from oprag.positions.sources import SourceKey, keys_seen, names_of_parts, source_of, warn_about_key
from oprag.warn import warn

__all__ = [
    "CONFLICTING_OFFSETS",
    "INSERTION_ORDER_ONLY",
    "LABELS_ALONE",
    "MISSING",
    "PARTS",
    "RESTARTED",
    "SHARED_BY_STORE",
    "SHARED_POSITION",
    "UNLINKED_RUNS",
    "UNNAMED",
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

# Causes of doubt. Those about positions are also the text of the message.
UNNAMED = "no source"
PARTS = "sources that are parts"
RESTARTED = (
    "the chunk_index values of a source were stamped in several calls, each starting at 0, so chunk_index is ignored"
)
UNLINKED_RUNS = (
    "the chunks of a source are linked in several runs whose relative order is unknown; the best-ranked run comes first"
)
INSERTION_ORDER_ONLY = (
    "the chunks of a source are in the order in which they were added to the store, because nothing else tells their "
    "order; this is wrong if some of them were added later"
)
SHARED_BY_STORE = (
    "chunks of a source share a page or another number, so they are in the order in which they were added to the "
    "store, which is wrong if some of them were added later"
)
MISSING = "chunks of a source have no position, so their order is unknown"
LABELS_ALONE = (
    "page labels alone tell the order of a source, which is wrong if they start again or change their style in it"
)
SHARED_POSITION = "chunks of a source share a page or another number, so they are ordered by retrieval rank there"
CONFLICTING_OFFSETS = (
    "the character offsets of a source contradict each other (offsets that restart in every section or file do), so "
    "they are ignored and the order is uncertain"
)

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
    """

    chunks: list[Chunk]
    sources: tuple[SourceReport, ...]
    groups: dict[str | int, list[Chunk]]


def place(chunks: Sequence[Chunk], source_key: SourceKey | None, position_key: PositionKey | None) -> Placed:
    """Find the source and the position of each chunk; the position kind is chosen once per source.

    Chunks from an earlier context keep their positions, because a smaller set could lead to another kind.
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
    """Return whether all positions have the same kind and field, not a caller's key, so that they are comparable."""
    readings = {
        (chunk.position.kind, chunk.position.field) for chunk in group if chunk.position and chunk.position.known
    }
    return len(readings) <= 1 and all(kind is not PositionKind.KEY for kind, _ in readings)


def without_order(placed: Placed, minimum: int = 2, *, by_store: bool = False) -> list[list[Chunk]]:
    """Return the chunks of each source whose order is uncertain.

    Args:
        placed: The chunks.
        minimum: Minimum number of chunks; sources with fewer are skipped.
        by_store: Whether numbers that were stamped from a store's insertion order count as uncertain.
    """
    return [
        group
        for group, report in zip(placed.groups.values(), placed.sources, strict=True)
        if report.source is not None
        and len(group) >= minimum
        and (_cause_of_doubt(group, report, group) is not None or (by_store and stamped_by_store(group)))
    ]


def _has_ties(group: Sequence[Chunk], report: SourceReport) -> bool:
    """Return whether some chunks of one source share a page, so that rank decides their order."""
    by_page = report.kind is PositionKind.PAGE
    return by_page and shared(group, [chunk.position and chunk.position.key for chunk in group])


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


def warn_about(placed: Placed, kept: Sequence[Chunk], options: ContextOptions) -> None:
    """Warn, once per cause, where a key is misspelled or the order of the kept chunks is uncertain."""
    if len(placed.chunks) < 2:
        return
    explained = False
    if options.source_key is not None:
        warn_about_key("source_key", options.source_key, placed.chunks)
    if options.position_key is not None:
        explained = warn_about_key("position_key", options.position_key, placed.chunks)
    for doubt in doubts(placed, kept, options):
        # The warning about the misspelled key covers this already.
        if not (explained and doubt.cause is MISSING):
            _warn(doubt, placed)


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
    return [*_doubts_about_sources(placed, options), *_doubts_about_positions(placed, kept, options)]


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
    by_id = [group for group in placed.groups.values() if options.source_key is None and _is_named_by_id(group)]
    single = [group for group in by_id if len({page_of(chunk) for chunk in group}) == 1]
    # A document of several pages, or two documents that begin with the same page, are whole files.
    if len(single) > 1 and len({page_of(group[0]) for group in single}) == len(single) == len(by_id):
        yield Doubt(
            f"{len(single)} documents are single pages without the name of their file, so the pages are not put in "
            "order",
            UNNAMED,
            list(chain.from_iterable(single)),
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
    """Return whether a source with pages has only a generated id as its name, as pages that PDF readers make."""
    name = group[0].source
    return (
        name is not None
        and name == group[0].document_id
        and bool(_UUID.fullmatch(name))
        and page_of(group[0]) is not None
    )


def _doubts_about_positions(placed: Placed, kept: Sequence[Chunk], options: ContextOptions) -> list[Doubt]:
    """Return the reasons why the order of sources with several kept chunks is uncertain."""
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
    """Warn once for each cause and set of metadata keys, so that chunks of another loader cause another warning."""
    about_sources = doubt.cause in (UNNAMED, PARTS)
    chunks = placed.chunks if about_sources else doubt.chunks
    keys = sorted({key for chunk in chunks for key in chunk.metadata if key in READ_FIELDS})
    category = SourceWarning if about_sources else PositionWarning
    source = None if about_sources else chunks[0].source
    example = "" if source is None else f"such as {describe(source)}; "
    seen = f"{example}metadata keys seen: {keys_seen(chunks)}"
    warn(f"{doubt.what} ({seen}); {_advice(doubt)}", category, doubt.cause, keys)


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
        by_store = any(chunk.store_place is not None for chunk in doubt.chunks)
        first, stamp, store = "" if by_store else _GIVE_INDEX, "StampPositions", "index"
    else:
        stated = doubt.cause is UNLINKED_RUNS or any("start_index" in chunk.metadata for chunk in doubt.chunks)
        first, stamp, store = "" if stated else _ADD_OFFSETS, "stamp_positions", "store"
    if frameworks.isdisjoint(("llama_index", "langchain_core")):
        stamp = "stamp_positions for LangChain, StampPositions for LlamaIndex"
    if doubt.cause is CONFLICTING_OFFSETS:
        first = _NAME_FILES
    return first + _FIXES.format(stamp=stamp, store=store, trust=trust)


def _cause_of_doubt(group: Sequence[Chunk], report: SourceReport, retrieved: Sequence[Chunk]) -> str | None:
    """Return why the order of the kept chunks of one source is uncertain, as a message; None if it is certain.

    Args:
        group: The kept chunks.
        report: The report on them.
        retrieved: All retrieved chunks of the source; one that was not kept can contradict the order.
    """
    if not report.missing and is_confirmed(group):
        return None
    in_store = report.kind is PositionKind.STORE
    by_metadata = not in_store and report.field != LOCATED
    # Other metadata are unreliable here too: where stamps restart, offsets usually do.
    if report.kind > PositionKind.STAMPED and by_metadata and len(numberings(retrieved)) > 1:
        return RESTARTED
    if report.runs > 1:
        return INSERTION_ORDER_ONLY if in_store else UNLINKED_RUNS
    by_page = report.kind is PositionKind.PAGE and report.field in FRAME_FIELDS
    if (report.missing or by_page) and _ignored_offsets(retrieved):
        return CONFLICTING_OFFSETS
    return MISSING if report.missing else _doubt_about_pages(group, report)


def _doubt_about_pages(group: Sequence[Chunk], report: SourceReport) -> str | None:
    """Return why the order of chunks that all have a position is uncertain; None if it is certain."""
    if report.field.endswith(TIES_BY_STORE):
        pages = {
            (chunk.position.key[0], chunk.store_place.run) for chunk in group if chunk.position and chunk.store_place
        }
        return SHARED_BY_STORE if len(pages) > len({page for page, _ in pages}) else None
    if _has_ties(group, report):
        return SHARED_POSITION
    return LABELS_ALONE if _rests_on_labels(group, report) else None


def _rests_on_labels(group: Sequence[Chunk], report: SourceReport) -> bool:
    """Return whether only page labels tell the order of pages, and the store does not tell the same."""
    if report.field.split(", ")[0] != LABEL_FIELD or len({page_of(chunk) for chunk in group}) < 2:
        return False
    numbers = [chunk.store_place.number for chunk in sorted(group, key=_key_of) if chunk.store_place is not None]
    return len(numbers) < len(group) or numbers != sorted(numbers)


def _key_of(chunk: Chunk) -> Any:
    return chunk.position.key if chunk.position is not None else ()


def _ignored_offsets(chunks: Sequence[Chunk]) -> bool:
    """Return whether the chunks have offsets that were all ignored because they contradict each other."""
    return all(chunk.span is None for chunk in chunks) and any(stated_span(chunk) is not None for chunk in chunks)
