"""Add the neighbors of kept chunks (`add_neighbors`), and find neighbors in a list (`neighbors_among`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oprag._internal.masking import describe, masked_error
from oprag._internal.tokens import count
from oprag._internal.warn import warn
from oprag.chunk import UNKNOWN_POSITION, Chunk, Drop, PositionKind, changed
from oprag.errors import ChunkError, OpragError, OpragWarning, OptionError, PositionWarning, SourceReadError
from oprag.options import ContextOptions, PositionKey, SourceKey
from oprag.pipeline.order import key_of
from oprag.positions.retrieved import SourceReport, group_by_source, place, report_sources
from oprag.positions.source_order import SourceOrder

__all__ = [
    "NeighborReader",
    "WithNeighbors",
    "add_neighbors",
    "best_of_sources",
    "neighbors_among",
    "read_in_order",
]

NeighborReader = Callable[[Chunk, int], Iterable[Chunk]]
"""Returns up to a number of chunks before and after a given one, in any order; ranks of the result are ignored."""

_EVERY = 20_000  # chunks before and after one, to read a whole source
_MAX_SOURCES = 10  # that are read whole for a question
# Chunks dropped for these reasons can still be added as neighbors, since these limits do not apply to neighbors.
_CAN_RETURN = ("max_candidates", "similarity_threshold", "k")
_CAN_RETURN_WHOLE = (*_CAN_RETURN, "redundancy_threshold")


class WithNeighbors(NamedTuple):
    """Selected chunks with their neighbors."""

    chunks: list[Chunk]  # the selected chunks, best first, then their neighbors, those of the best chunk first
    dropped: list[Drop]  # the remaining dropped chunks
    sources: tuple[SourceReport, ...]  # how the positions of each source's chunks were determined
    orders: Mapping[str | int, SourceOrder]  # the orders of the sources, with the neighbors
    whole: frozenset[str | None] = frozenset()  # the sources of which all chunks were added


def add_neighbors(
    retrieved: Sequence[Chunk],
    selected: Sequence[Chunk],
    dropped: Sequence[Drop],
    options: ContextOptions,
    read: Callable[[Chunk, int], Sequence[Chunk]] | None,
) -> WithNeighbors:
    """Read the chunks around the selected ones, or all of a small source, and determine positions of all together.

    A neighbor that was retrieved keeps its rank and score. Chunks that were dropped because they repeat a kept chunk or
    have no position are not added again. If neighbors contradict the positions of retrieved chunks, no neighbors are
    added for that source.
    """
    if read is None:
        raise OptionError(
            f"{options.reads_around} requires read_neighbors; pass read_neighbors=..., a function that returns "
            "the chunks around a given one",
            options.neighbors,
        )
    # Also for chunks without a position: links determine it only together with the neighbors.
    small = _small_sources(selected, options, read) if options.whole_source_tokens is not None else {}
    whole = frozenset(chunk.source for chunk in selected if chunk.rank in small)
    read_for = small | {
        chunk.rank: _read_checked(read, chunk, options.neighbors)
        for chunk in selected
        if options.neighbors and chunk.source is not None and chunk.source not in whole
    }
    placed = [*selected, *(drop.chunk for drop in dropped)]
    numbered = _numbered(retrieved, {chunk.rank: chunk.source for chunk in placed}, read_for)
    together = place(numbered.chunks, options.source_key, options.position_key)
    by_rank, contradicted = _placed_together(placed, together.chunks)
    orders = {name: order for name, order in together.orders.items() if name not in contradicted}
    anchors = [_with_position(chunk, by_rank) for chunk in selected]
    drops = {drop.chunk.rank: drop for drop in dropped}
    taken = {chunk.rank for chunk in selected}
    neighbors: list[Chunk] = []
    for anchor in anchors:
        around = [by_rank[rank] for rank in numbered.ranks.get(anchor.rank, ()) if rank in by_rank]
        if anchor.rank in numbered.altered:
            # A text that was replaced, such as by a sentence window, may already contain the neighbors.
            around = [one for one in around if one.rank == anchor.rank or one.text.strip() not in anchor.text]
        for neighbor in _nearest(anchor, around, _EVERY if anchor.rank in small else options.neighbors):
            drop = drops.get(neighbor.rank)
            # No threshold applies to a source that is taken whole.
            again = drop is None or drop.reason in (_CAN_RETURN_WHOLE if anchor.rank in small else _CAN_RETURN)
            if neighbor.rank in taken or not again:
                continue
            taken.add(neighbor.rank)
            similarity = drop.chunk.similarity if drop is not None else None
            neighbors.append(changed(neighbor, neighbor_of=anchor.rank, similarity=similarity))
    left = [
        Drop(_with_position(drop.chunk, by_rank), drop.reason, drop.value, drop.detail, drop.twin)
        for drop in dropped
        if drop.chunk.rank not in taken
    ]
    chunks = [*anchors, *neighbors]
    sources = report_sources([*chunks, *(drop.chunk for drop in left)])
    return WithNeighbors(chunks, left, sources, orders, whole)


def _small_sources(
    selected: Sequence[Chunk], options: ContextOptions, read: Callable[[Chunk, int], Sequence[Chunk]]
) -> dict[int, Sequence[Chunk]]:
    """Return all chunks of each source that is taken whole, by the rank of its best selected chunk."""
    found: dict[int, Sequence[Chunk]] = {}
    for chunk in best_of_sources(selected):
        around = _read_checked(read, chunk, _EVERY)
        left = options.whole_source_tokens or 0
        for one in around:
            left -= count(one.text, options.count_tokens)
            if left < 0:
                break
        else:
            if around:
                found[chunk.rank] = around
    return found


def best_of_sources(selected: Sequence[Chunk]) -> list[Chunk]:
    """Return the best selected chunk of each source, of as many sources as are read whole for a question."""
    best: dict[str, Chunk] = {}
    for chunk in selected:
        if chunk.source is not None:
            best.setdefault(chunk.source, chunk)
    return list(best.values())[:_MAX_SOURCES]


def read_in_order(chunk: Chunk, options: ContextOptions, read: Callable[[Chunk, int], Sequence[Chunk]]) -> list[Chunk]:
    """Read all chunks of the source of one, in order; none if the position of one is unknown."""
    around = _read_checked(read, chunk, _EVERY)
    names = {name for one in around for name in (one.id, one.text)}
    if around and names.isdisjoint({chunk.id or chunk.text, chunk.text}):
        # A function may leave out the chunk itself.
        around = [*around, chunk]
    numbered = [changed(one, rank=rank) for rank, one in enumerate(around)]
    placed = place(numbered, options.source_key, options.position_key).chunks
    mine = [one for one in placed if one.source == chunk.source]
    return sorted(mine, key=key_of) if all(map(_has_unique_position, mine)) else []


def _has_unique_position(chunk: Chunk) -> bool:
    """Whether the position orders the chunk among its neighbors; a page shared by several chunks does not."""
    position = chunk.position or UNKNOWN_POSITION
    return chunk.source is not None and position.kind not in (PositionKind.PAGE, PositionKind.NONE)


def _read_checked(read: Callable[[Chunk, int], Sequence[Chunk]], chunk: Chunk, number: int) -> Sequence[Chunk]:
    try:
        around = read(chunk, number)
    except (OpragError, OpragWarning):
        raise
    except Exception as error:
        what = f"the neighbors of a chunk ({chunk.label()}) cannot be read"
        raise SourceReadError(f"{what}: {masked_error(error)}", chunk) from error
    for neighbor in around:
        if not isinstance(neighbor, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects as neighbors, got {type(neighbor).__name__}", neighbor)
    return around


class _Numbered(NamedTuple):
    """Retrieved chunks and neighbors, with distinct ranks."""

    chunks: list[Chunk]
    ranks: dict[int, list[int]]  # the ranks of the chunks read for each selected chunk, by its rank
    altered: set[int]  # the ranks of retrieved chunks whose text differs from the text that `read_neighbors` returned


def _numbered(
    retrieved: Sequence[Chunk], sources: dict[int, str | None], read_for: dict[int, Sequence[Chunk]]
) -> _Numbered:
    """Assign ranks to neighbors: that of the retrieved chunk with this source and id, else the next free ones."""
    chunks = list(retrieved)
    # Not by text, since a step after the search may have changed it.
    known: dict[tuple[str | None, str | None], int] = {
        (sources[chunk.rank], chunk.id): chunk.rank for chunk in reversed(chunks) if chunk.id is not None
    }
    next_rank = 1 + max(chunk.rank for chunk in chunks)
    ranks: dict[int, list[int]] = {}
    texts = {chunk.rank: chunk.text for chunk in chunks}
    altered: set[int] = set()
    for anchor, around in read_for.items():
        ranks[anchor] = []
        for neighbor in around:
            name = (sources[anchor], neighbor.id)
            rank = known.get(name) if neighbor.id is not None else None
            if rank is None:
                rank, next_rank = next_rank, next_rank + 1
                chunks.append(changed(neighbor, rank=rank))
                if neighbor.id is not None:
                    known[name] = rank
            elif texts.get(rank, neighbor.text) != neighbor.text:
                altered.add(rank)
            ranks[anchor].append(rank)
    return _Numbered(chunks, ranks, altered)


def _placed_together(before: Sequence[Chunk], placed: Sequence[Chunk]) -> tuple[dict[int, Chunk], set[str | None]]:
    """All chunks by rank, copies replaced by the first; and the sources whose neighbors contradict positions."""
    now = {chunk.rank: chunk for chunk in placed}
    contradicted = {
        chunk.source for chunk in before if _has_unique_position(chunk) and not _has_unique_position(now[chunk.rank])
    }
    if contradicted:
        warn(
            "the neighbors of retrieved chunks contradict their positions, so no neighbors are added for their "
            "sources; check that read_neighbors and the retriever return the same chunks",
            PositionWarning,
            cause="neighbors that contradict positions",
        )
    first: dict[Any, Chunk] = {}
    by_rank = {
        chunk.rank: first.setdefault((chunk.source, chunk.position, chunk.span, chunk.text), chunk)
        for chunk in placed
        if chunk.source not in contradicted
    }
    return by_rank | {chunk.rank: chunk for chunk in before if chunk.source in contradicted}, contradicted


def _with_position(chunk: Chunk, by_rank: dict[int, Chunk]) -> Chunk:
    """The chunk with the source, position and span that were determined together with its neighbors."""
    placed = by_rank[chunk.rank]
    return changed(chunk, source=placed.source, position=placed.position, span=placed.span)


def _nearest(anchor: Chunk, around: Sequence[Chunk], number: int) -> Iterator[Chunk]:
    """Up to `number` chunks before and after the anchor, nearest first, and the one before first at equal distance."""
    for chunk in around:
        if chunk.source != anchor.source:
            raise ChunkError(
                f"the neighbors of a chunk ({anchor.label()}) must have the same source, got one with source "
                f"{describe(chunk.source)}",
                chunk,
            )
    if not _has_unique_position(anchor):
        return
    key = key_of(anchor)
    ordered = sorted(filter(_has_unique_position, around), key=key_of)
    before = [chunk for chunk in ordered if key_of(chunk) < key][::-1][:number]
    after = [chunk for chunk in ordered if key_of(chunk) > key][:number]
    for distance in range(max(len(before), len(after))):
        yield from before[distance : distance + 1]
        yield from after[distance : distance + 1]


def neighbors_among(
    chunks: Iterable[Chunk], *, source_key: SourceKey | None = None, position_key: PositionKey | None = None
) -> NeighborReader:
    """Return a function for `read_neighbors` that finds neighbors in a list of all chunks.

    Args:
        chunks: All chunks of the sources, in any order; their ranks are ignored.
        source_key: See `ContextOptions.source_key`.
        position_key: See `ContextOptions.position_key`.
    """
    indexed = [changed(chunk, rank=index) for index, chunk in enumerate(chunks)]
    return _NeighborsInList(indexed, source_key, position_key)


class _NeighborsInList:
    """Finds the neighbors of a chunk by its position in its source."""

    def __init__(self, chunks: list[Chunk], source_key: SourceKey | None, position_key: PositionKey | None) -> None:
        self._chunks = chunks
        # By index: the ordered indices of the chunk's source, and the place of the chunk among them.
        self._places: dict[int, tuple[list[int], int]] = {}
        for group in group_by_source(place(chunks, source_key, position_key).chunks):
            # If a source was added twice, copies of a chunk share the place of the first.
            ordered: list[int] = []
            places: dict[Any, int] = {}
            for chunk in sorted(filter(_has_unique_position, group), key=key_of):
                identity = key_of(chunk), chunk.text
                if identity not in places:
                    places[identity] = len(ordered)
                    ordered.append(chunk.rank)
                self._places[chunk.rank] = ordered, places[identity]
        self._indices: dict[Any, list[int]] = {}
        for chunk in chunks:
            self._indices.setdefault(_id_and_text(chunk), []).append(chunk.rank)

    def __call__(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        index = _index_of(chunk, [self._chunks[one] for one in self._indices.get(_id_and_text(chunk), ())])
        if index is None or index not in self._places:
            return []
        ordered, at = self._places[index]
        return [self._chunks[one] for one in ordered[max(0, at - number) : at + number + 1]]


def _id_and_text(chunk: Chunk) -> tuple[str | None, str]:
    return chunk.id, chunk.text


def _index_of(chunk: Chunk, candidates: Sequence[Chunk]) -> int | None:
    """The index of a chunk among those with the same id and text, told apart by their places and metadata."""
    if len(candidates) < 2:
        return candidates[0].rank if candidates else None
    for other in sorted(candidates, key=lambda other: other.place != chunk.place):
        if all(chunk.metadata.get(name) == value for name, value in other.metadata.items()):
            return other.rank
    return None
