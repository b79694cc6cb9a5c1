"""Order of the kept chunks in the context, and `arrange`, which only orders."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

from oprag.chunk import Chunk, PositionKind, finite, sorted_by_rank
from oprag.errors import OptionError
from oprag.options import ContextOptions, SourceRanking, as_context_options
from oprag.pipeline.select import without_missing
from oprag.positions.retrieved import group_by_source, place, warn_about
from oprag.positions.values import natural_key

__all__ = ["arrange", "in_order", "key_of"]

key_of = attrgetter("position.key")
"""Sort key of chunks with positions, within one source."""


def arrange(chunks: Iterable[Chunk], options: ContextOptions | None = None, **changes: Any) -> list[Chunk]:
    """Sort chunks into source order, or into another order.

    Only chunks without a position are dropped, and only with `on_missing_position="drop"`. `build_context` also removes
    duplicates and applies `k` and `token_budget`.

    Args:
        chunks: Chunks with distinct ranks, in any order.
        options: The options; only `order`, `seed`, `source_ranking`, `on_missing_position`, `source_key` and
            `position_key` are used.
        **changes: Options of `ContextOptions` to override, such as `order="rank"`.

    Returns:
        The chunks in order, with `source`, `position` and `span` filled in.

    Raises:
        ChunkError: An element is not a chunk, or two chunks have the same rank.
        OptionError: An option is unknown or invalid.
        MissingPositionError: A chunk has no position, and `on_missing_position="error"`.

    Example:
        >>> hits = [Chunk("end", rank=0, source="book", metadata={"chunk_index": 9}),
        ...         Chunk("start", rank=1, source="book", metadata={"chunk_index": 2})]
        >>> [chunk.text for chunk in arrange(hits)]
        ['start', 'end']
    """
    options = as_context_options(options, changes)
    placed = place(sorted_by_rank(chunks), options.source_key, options.position_key)
    kept = placed.chunks
    if options.on_missing_position in ("drop", "error"):
        kept, _ = without_missing(kept, options.on_missing_position)
    warn_about(placed, placed.chunks, options)
    return in_order(kept, options)


def in_order(chunks: Sequence[Chunk], options: ContextOptions) -> list[Chunk]:
    """Arrange chunks, given best first and with positions, in the order of the options."""
    if options.continuity:
        # They were selected by value; neighbors come after the chunks for which they were added.
        chunks = sorted(chunks, key=lambda chunk: (chunk.neighbor_of is not None, chunk.rank))
    match options.order:
        case "source":
            groups = group_by_source(chunks)
            if options.source_ranking != "best_first" and len(groups) > 1:
                groups = _ordered_groups(groups, options.source_ranking)
            first = options.on_missing_position == "first"
            ordered: list[Chunk] = []
            for group in groups:
                ordered += _by_position(group, missing_first=first) if len(group) > 1 else group
            return ordered
        case "rank":
            return list(chunks)
        case "reverse_rank":
            return list(reversed(chunks))
        case "edges":
            return [*chunks[::2], *reversed(chunks[1::2])]
        case "random":
            shuffled = list(chunks)
            random.Random(options.seed).shuffle(shuffled)
            return shuffled


def _by_position(group: Sequence[Chunk], *, missing_first: bool) -> list[Chunk]:
    """One source's chunks by position; sorting is stable, so ties stay in rank order."""
    known: list[Chunk] = []
    missing: list[Chunk] = []
    unknown = PositionKind.NONE  # local, since looking up an enum member is slow in Python 3.11
    for chunk in group:
        (missing if chunk.position is None or chunk.position.kind is unknown else known).append(chunk)
    known.sort(key=key_of)
    return [*missing, *known] if missing_first else [*known, *missing]


def _ordered_groups(groups: list[list[Chunk]], source_ranking: SourceRanking) -> list[list[Chunk]]:
    """Sort groups, given best_first, by another source ranking; ties stay in best_first order."""
    if source_ranking == "best_last":
        return groups[::-1]
    if source_ranking == "name":
        return sorted(groups, key=_natural)
    if not callable(source_ranking):
        totals = _totals(groups)
        return [group for _, group in sorted(zip(totals, groups, strict=True), key=lambda pair: -pair[0])]
    keys = [source_ranking(_by_position(group, missing_first=False)) for group in groups]
    try:
        ranking = sorted(range(len(groups)), key=keys.__getitem__)
    except (TypeError, ValueError) as error:
        raise OptionError(f"source_ranking returned keys that cannot be compared: {error}", source_ranking) from error
    return [groups[index] for index in ranking]


def _natural(group: Sequence[Chunk]) -> tuple[bool, Any]:
    source = group[0].source
    return (source is None, () if source is None else natural_key(source))


def _totals(groups: Sequence[Sequence[Chunk]]) -> list[float]:
    """The sum of scores of each group; of 1/(1 + rank) if scores do not decrease with rank, such as distances."""
    chunks = sorted((chunk for group in groups for chunk in group), key=lambda chunk: chunk.rank)
    scores = [score for chunk in chunks if (score := finite(chunk.score)) is not None]
    if len(scores) == len(chunks) and all(better >= worse for better, worse in pairwise(scores)):
        return [math.fsum(finite(chunk.score) or 0.0 for chunk in group) for group in groups]
    return [math.fsum(1 / (1 + chunk.rank) for chunk in group) for group in groups]
