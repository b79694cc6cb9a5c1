"""Filling in the chunks around each kept one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from oprag.arrange import key_of
from oprag.assembly import Assembly
from oprag.chunk import Chunk, changed
from oprag.drop import Drop
from oprag.errors import ChunkError, OptionError
from oprag.place import SourceReport, place, report_sources
from oprag.rung import Rung

__all__ = ["NeighborReader", "WithNeighbors", "fill_in"]

NeighborReader = Callable[[Chunk, int], Iterable[Chunk]]
"""Gives the chunks around one, so many before and so many after it, in any sequence; their ranks do not matter."""

# What was left out for a reason that an unretrieved neighbour would not have to meet either.
_MAY_COME_BACK = ("fetch_k", "similarity_threshold", "k")


class WithNeighbors(NamedTuple):
    """Selected chunks with what stands around them.

    Attributes:
        chunks: The selected chunks, best first, and then their neighbours, those of the best chunk first.
        dropped: The others.
        sources: How the chunks of each source were placed.
    """

    chunks: list[Chunk]
    dropped: list[Drop]
    sources: tuple[SourceReport, ...]


def fill_in(
    retrieved: Sequence[Chunk],
    selected: Sequence[Chunk],
    dropped: Sequence[Drop],
    assembly: Assembly,
    read: NeighborReader | None,
) -> WithNeighbors:
    """Read the neighbours of the selected chunks, and place them together with all that was retrieved.

    A neighbour that was retrieved keeps its rank and its score. One that repeats a kept chunk, or was left out for want
    of a position, does not come back.

    Args:
        retrieved: All chunks that were retrieved, as they came.
        selected: Those that the selection kept, best first.
        dropped: The others.
        assembly: The options.
        read: Gives the chunks around one.

    Raises:
        OptionError: There is nothing to read neighbours from.
        ChunkError: What was read is no chunk, or belongs to another source than the chunk that it was read for.
    """
    if read is None:
        raise OptionError(
            "neighbors needs read_neighbors=, a function that gives the chunks around one",
            assembly.neighbors,
        )
    # Whatever is known of its place so far: links place a chunk only together with its neighbours.
    read_for = {chunk.rank: _read(read, chunk, assembly.neighbors) for chunk in selected if chunk.source is not None}
    numbered = _numbered(retrieved, read_for)
    placed = place(numbered.chunks, assembly.source_key, assembly.position_key).chunks
    by_rank = _without_copies(placed)
    again = [_at_its_place(chunk, by_rank) for chunk in selected]
    out = {drop.chunk.rank: drop for drop in dropped}
    taken = {chunk.rank for chunk in selected}
    neighbours: list[Chunk] = []
    for anchor in again:
        around = [by_rank[rank] for rank in numbered.ranks.get(anchor.rank, ())]
        for neighbour in _nearest(anchor, around, assembly.neighbors):
            drop = out.get(neighbour.rank)
            if neighbour.rank in taken or (drop is not None and drop.reason not in _MAY_COME_BACK):
                continue
            taken.add(neighbour.rank)
            similarity = drop.chunk.similarity if drop is not None else None
            neighbours.append(changed(neighbour, neighbor_of=anchor.rank, similarity=similarity))
    left = [
        Drop(_at_its_place(drop.chunk, by_rank), drop.reason, drop.figure, drop.detail, drop.twin)
        for drop in dropped
        if drop.chunk.rank not in taken
    ]
    chunks = [*again, *neighbours]
    return WithNeighbors(chunks, left, report_sources([*chunks, *(drop.chunk for drop in left)]))


def _has_a_place(chunk: Chunk) -> bool:
    """Whether it can be said what stands before and behind a chunk: a page that many share does not tell."""
    return (
        chunk.source is not None
        and chunk.position is not None
        and chunk.position.rung
        not in (
            Rung.COARSE,
            Rung.NONE,
        )
    )


def _read(read: NeighborReader, chunk: Chunk, number: int) -> list[Chunk]:
    around = list(read(chunk, number))
    for neighbour in around:
        if not isinstance(neighbour, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects as neighbours, got {type(neighbour).__name__}", neighbour)
    return around


class _Numbered(NamedTuple):
    """All chunks with ranks of their own, and for each kept one the ranks of those that were read for it."""

    chunks: list[Chunk]
    ranks: dict[int, list[int]]


def _numbered(retrieved: Sequence[Chunk], read_for: dict[int, list[Chunk]]) -> _Numbered:
    """Give chunks that were not retrieved the ranks behind those that were; one with the same id comes once."""
    chunks = list(retrieved)
    with_id = [chunk for chunk in reversed(chunks) if chunk.id is not None]
    known: dict[tuple[str | None, str], int] = {(chunk.id, chunk.text): chunk.rank for chunk in with_id}
    free = 1 + max(chunk.rank for chunk in chunks)
    ranks: dict[int, list[int]] = {}
    for anchor, around in read_for.items():
        ranks[anchor] = []
        for neighbour in around:
            rank = known.get((neighbour.id, neighbour.text))
            if rank is None:
                rank, free = free, free + 1
                chunks.append(changed(neighbour, rank=rank))
                if neighbour.id is not None:
                    known[neighbour.id, neighbour.text] = rank
            ranks[anchor].append(rank)
    return _Numbered(chunks, ranks)


def _without_copies(placed: Sequence[Chunk]) -> dict[int, Chunk]:
    """Each chunk by its rank; a copy of one, by source, position and text, stands for the first."""
    first: dict[Any, Chunk] = {}
    by_rank: dict[int, Chunk] = {}
    for chunk in placed:
        if _has_a_place(chunk):
            by_rank[chunk.rank] = first.setdefault((chunk.source, key_of(chunk), chunk.text), chunk)
        else:
            by_rank[chunk.rank] = chunk
    return by_rank


def _at_its_place(chunk: Chunk, by_rank: dict[int, Chunk]) -> Chunk:
    """A chunk as it was judged, placed with the knowledge of its neighbours."""
    placed = by_rank[chunk.rank]
    return changed(chunk, source=placed.source, position=placed.position, span=placed.span)


def _nearest(anchor: Chunk, around: Sequence[Chunk], number: int) -> Iterator[Chunk]:
    """So many chunks before and after this one; the nearest first, and of these the one before."""
    for chunk in around:
        if chunk.source != anchor.source:
            raise ChunkError(
                f"the neighbours of a chunk ({anchor.label()}) must be of its source, got one of {chunk.source!r}",
                chunk,
            )
    if not _has_a_place(anchor):
        return
    key = key_of(anchor)
    ordered = sorted(filter(_has_a_place, around), key=key_of)
    before = [chunk for chunk in ordered if key_of(chunk) < key][::-1]
    after = [chunk for chunk in ordered if key_of(chunk) > key]
    for distance in range(number):
        yield from before[distance : distance + 1]
        yield from after[distance : distance + 1]
