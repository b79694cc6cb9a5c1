"""Selecting the chunks to keep: `max_candidates`, duplicates, missing positions, thresholds, `k`."""

from collections.abc import Sequence
from typing import Any, Literal

from oprag.chunk import NOWHERE, Chunk, Drop, PositionKind, Vector
from oprag.errors import MissingPositionError, RetrievalWarning
from oprag.options import ContextOptions
from oprag.warn import warn

__all__ = ["select", "warn_about_few", "without_missing"]


def select(
    chunks: Sequence[Chunk], options: ContextOptions, question_vector: Vector | None = None
) -> tuple[list[Chunk], list[Drop]]:
    """Keep the first k of the candidates that are not duplicates, have a position and pass the thresholds."""
    kept = list(chunks)
    dropped: list[Drop] = []
    if options.max_candidates is not None:
        kept, dropped = _first(kept, "max_candidates", options.max_candidates)
    kept, drops = _without_duplicates(kept)
    dropped += drops
    if options.on_missing_position in ("drop", "error"):
        kept, drops = without_missing(kept, options.on_missing_position)
        dropped += drops
    if options.similarity_threshold is not None or options.redundancy_threshold is not None:
        # NumPy is loaded only for who wants thresholds.
        from oprag.assembly.thresholds import apply_thresholds

        kept, drops = apply_thresholds(kept, options, question_vector)
        dropped += drops
    if options.k is not None:
        kept, drops = _first(kept, "k", options.k)
        dropped += drops
    return kept, dropped


def _first(
    chunks: Sequence[Chunk], reason: Literal["max_candidates", "k"], limit: int
) -> tuple[list[Chunk], list[Drop]]:
    return list(chunks[:limit]), [Drop(chunk, reason, limit, f"behind the first {limit}") for chunk in chunks[limit:]]


def without_missing(chunks: Sequence[Chunk], policy: Literal["drop", "error"]) -> tuple[list[Chunk], list[Drop]]:
    """Drop the chunks without a position, or raise, as `on_missing_position` says."""
    missing = [chunk for chunk in chunks if chunk.position is None or not chunk.position.known]
    if missing and policy == "error":
        chunk = missing[0]
        raise MissingPositionError(
            f"{len(missing)} of {len(chunks)} chunks have no position, the first one (rank {chunk.rank}, source "
            f"{chunk.source!r}) with the metadata keys {chunk.keys_text()}; stamp positions at ingestion, write them "
            'into the store with write_positions, or use on_missing_position="last", "first" or "drop"',
            chunk,
        )
    ranks = {chunk.rank for chunk in missing}
    drops = [Drop(chunk, "on_missing_position", None, "has no position") for chunk in missing]
    return [chunk for chunk in chunks if chunk.rank not in ranks], drops


def _without_duplicates(chunks: Sequence[Chunk]) -> tuple[list[Chunk], list[Drop]]:
    """The best-ranked chunk of each source, position and text.

    Equal text elsewhere in the source is not a duplicate. Where the position does not tell two chunks apart (it is
    unknown, or a page that several chunks share), chunks with different ids are different chunks.
    """
    kept: list[Chunk] = []
    dropped: list[Drop] = []
    seen: dict[object, int] = {}
    vague = (PositionKind.PAGE, PositionKind.NONE)  # in Python 3.11, looking up an enum member is a call
    for chunk in chunks:
        position, source = chunk.position or NOWHERE, chunk.source
        name: object = chunk.id
        if source is not None and position.kind not in vague:
            name = None
        elif name is None and (source is None or position.kind is PositionKind.NONE):
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
    """Warn where a retriever with a limit of its own found less than `k`, which has no effect then."""
    if k is not None and 0 < len(found) < k:
        warn(
            f"k={k} has no effect: only {len(found)} chunks were retrieved; let the retriever search for more (k in "
            "LangChain, similarity_top_k in LlamaIndex)",
            RetrievalWarning,
            cause=f"fewer chunks than k={k}",
        )
