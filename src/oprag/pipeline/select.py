"""Select the chunks to keep: `max_candidates`, duplicates, missing positions, thresholds, continuity, `k`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from oprag._internal.masking import describe
from oprag._internal.warn import warn
from oprag.chunk import UNKNOWN_POSITION, Chunk, Drop, PositionKind, Vector
from oprag.errors import MissingPositionError, RetrievalWarning
from oprag.options import CANDIDATES, ContextOptions
from oprag.pipeline.continuity import Values

__all__ = ["Selected", "select", "warn_about_copies", "warn_about_few", "without_missing"]


class Selected(NamedTuple):
    """The selected chunks."""

    chunks: list[Chunk]  # the chunks, best first: by rank, or by value with continuity
    dropped: list[Drop]  # the other chunks
    values: Values | None = None  # the values of the candidates; None without continuity


def select(chunks: Sequence[Chunk], options: ContextOptions, question_vector: Vector | None = None) -> Selected:
    """Keep the best k of the candidates that are not duplicates, have a position and pass the thresholds."""
    kept = list(chunks)
    dropped: list[Drop] = []
    values = None
    if options.considered is not None:
        kept, dropped = _first(kept, "max_candidates", options.considered)
    if options.continuity and len(kept) == options.k:
        _warn_about_candidates(options.k)
    kept, drops = _without_duplicates(kept)
    dropped += drops
    if options.on_missing_position in ("drop", "error"):
        kept, drops = without_missing(kept, options.on_missing_position)
        dropped += drops
    if options.similarity_threshold is not None or options.redundancy_threshold is not None:
        # Imported here, since only thresholds need NumPy.
        from oprag.pipeline.thresholds import apply_thresholds

        kept, drops, values = apply_thresholds(kept, options, question_vector)
        dropped += drops
    if options.continuity and values is None:
        values = Values(kept, options.continuity)
        kept = values.sorted(kept)
    if options.k is not None:
        kept, drops = _first(kept, "k", options.k, " by value" if values else "")
        dropped += drops
    return Selected(kept, dropped, values)


def _first(
    chunks: Sequence[Chunk], reason: Literal["max_candidates", "k"], limit: int, how: str = ""
) -> tuple[list[Chunk], list[Drop]]:
    detail = f"not among the first {limit}{how}"
    return list(chunks[:limit]), [Drop(chunk, reason, limit, detail) for chunk in chunks[limit:]]


def _warn_about_candidates(k: int) -> None:
    warn(
        f"continuity has no effect: there are only k={k} candidates to choose from; retrieve {CANDIDATES * k}: raise "
        "max_candidates, or the limit of the retriever (k in LangChain, similarity_top_k in LlamaIndex)",
        RetrievalWarning,
        cause=f"continuity with {k} candidates",
    )


def without_missing(chunks: Sequence[Chunk], policy: Literal["drop", "error"]) -> tuple[list[Chunk], list[Drop]]:
    """Drop chunks without a position, or raise an error, according to `on_missing_position`."""
    missing = [chunk for chunk in chunks if chunk.position is None or not chunk.position.known]
    if missing and policy == "error":
        chunk = missing[0]
        raise MissingPositionError(
            f"{len(missing)} of {len(chunks)} chunks have no position; the first (rank {chunk.rank}, source "
            f"{describe(chunk.source)}) has the metadata keys {chunk.keys_text()}; stamp positions at ingestion, add "
            'them to the store with write_positions, or use on_missing_position="last", "first" or "drop"',
            chunk,
        )
    ranks = {chunk.rank for chunk in missing}
    drops = [Drop(chunk, "on_missing_position", None, "has no position") for chunk in missing]
    return [chunk for chunk in chunks if chunk.rank not in ranks], drops


def _without_duplicates(chunks: Sequence[Chunk]) -> tuple[list[Chunk], list[Drop]]:
    """Keep the best-ranked chunk of each source, position and text; of images and vague positions, of each id."""
    kept: list[Chunk] = []
    dropped: list[Drop] = []
    seen: dict[object, int] = {}
    vague = (PositionKind.PAGE, PositionKind.NONE)  # local, since looking up an enum member is slow in Python 3.11
    for chunk in chunks:
        position, source = chunk.position or UNKNOWN_POSITION, chunk.source
        name: object = chunk.id
        if chunk.text and source is not None and position.kind not in vague:
            name = None
        elif name is None and (not chunk.text or source is None or position.kind is PositionKind.NONE):
            name = chunk.rank
        identity = (source, position.key, name, chunk.text)
        twin = seen.setdefault(identity, chunk.rank)
        if twin == chunk.rank:
            kept.append(chunk)
        else:
            detail = f"same source, position and text as rank {twin}"
            dropped.append(Drop(chunk, "duplicate", twin, detail, twin))
    return kept, dropped


def warn_about_few(found: Sequence[Any], k: int | None) -> None:
    """Warn if a wrapped retriever returned fewer chunks than `k`."""
    if k is not None and 0 < len(found) < k:
        warn(
            f"k={k} has no effect: the retriever returned only {len(found)}; raise its own limit (k in LangChain, "
            "similarity_top_k in LlamaIndex)",
            RetrievalWarning,
            cause=f"fewer chunks than k={k}",
        )


def warn_about_copies(chunks: Sequence[Chunk], dropped: Sequence[Drop], k: int | None) -> None:
    """Warn if copies with other ids leave fewer than `k` of the candidates, or fewer at all if `k` is None.

    Chunks that several searches of a store find have the same id, so a copy with another id was added again. With
    `position_key`, equal texts may be repetitions in the source.
    """
    duplicates = [drop for drop in dropped if drop.reason == "duplicate"]
    if not duplicates:
        return
    by_rank = {chunk.rank: chunk for chunk in chunks}
    pairs = [(drop.chunk, by_rank[drop.twin]) for drop in duplicates if drop.twin is not None]
    copies = sum(
        None not in (one.id, other.id)
        and one.id != other.id
        and one.position is not None
        and one.position.kind is not PositionKind.KEY
        for one, other in pairs
    )
    found = len(chunks) - sum(drop.reason == "max_candidates" for drop in dropped)
    left = found - len(duplicates)
    if copies and (k is None or left < k <= found):
        one_is = "chunk is a copy" if copies == 1 else "chunks are copies"
        warn(
            f"{copies} retrieved {one_is} of others under other ids, which leaves {left} of {found}: a source was "
            "probably added to the store more than once, or is in several of the searched stores; check_positions "
            "shows which, and how to delete the copies",
            RetrievalWarning,
            cause="copies in the store",
        )
