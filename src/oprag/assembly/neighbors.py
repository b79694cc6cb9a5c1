"""Adding the chunks around each kept one: `fill_in` for `neighbors`, and `neighbors_among` to read them from a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from oprag.assembly.order import key_of
from oprag.chunk import Chunk, Drop, PositionKind, changed
from oprag.errors import ChunkError, OptionError, PositionWarning
from oprag.masking import describe
from oprag.options import ContextOptions
from oprag.positions.ladder import PositionKey, counts_from_document
from oprag.positions.placing import SourceReport, group_by_source, place, report_sources
from oprag.positions.sources import SourceKey
from oprag.warn import warn

__all__ = ["NeighborReader", "WithNeighbors", "fill_in", "neighbors_among"]

NeighborReader = Callable[[Chunk, int], Iterable[Chunk]]
"""Returns this many chunks before and after one, in any sequence; their ranks do not matter."""

# Chunks dropped for these reasons may come back: an unretrieved neighbour would not have to meet them either.
_MAY_COME_BACK = ("max_candidates", "similarity_threshold", "k")


class WithNeighbors(NamedTuple):
    """Selected chunks with those around them.

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
    options: ContextOptions,
    read: Callable[[Chunk, int], Sequence[Chunk]] | None,
) -> WithNeighbors:
    """Read the neighbours of the selected chunks, and place them together with all that was retrieved.

    A neighbour that was retrieved keeps its rank and its score. One that repeats a kept chunk, or was left out for want
    of a position, does not come back. Where neighbours contradict the positions of what was retrieved, nothing is
    filled in for that source.

    Offsets of a framework count from a document. Around a chunk that is placed by them, those of another document of
    the source cannot be compared.
    """
    if read is None:
        raise OptionError(
            "neighbors needs read_neighbors=, a function that returns the chunks around one", options.neighbors
        )
    # Also for chunks without a position: links place a chunk only together with its neighbours.
    read_for = {chunk.rank: _checked(read, chunk, options.neighbors) for chunk in selected if chunk.source is not None}
    placed = [*selected, *(drop.chunk for drop in dropped)]
    numbered = _numbered(retrieved, {chunk.rank: chunk.source for chunk in placed}, read_for)
    by_rank = _placed_together(placed, numbered.chunks, options)
    again = [_at_its_place(chunk, by_rank) for chunk in selected]
    out = {drop.chunk.rank: drop for drop in dropped}
    taken = {chunk.rank for chunk in selected}
    neighbours: list[Chunk] = []
    for anchor in again:
        around = [by_rank[rank] for rank in numbered.ranks.get(anchor.rank, ()) if rank in by_rank]
        if anchor.rank in numbered.altered:
            # The window around a sentence contains its neighbours already.
            around = [one for one in around if one.rank == anchor.rank or one.text.strip() not in anchor.text]
        for neighbour in _nearest(anchor, around, options.neighbors):
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
    """Whether the chunks before and after this one are known: a page that many share does not tell."""
    known = chunk.source is not None and chunk.position is not None
    return known and chunk.position is not None and chunk.position.kind not in (PositionKind.PAGE, PositionKind.NONE)


def _checked(read: Callable[[Chunk, int], Sequence[Chunk]], chunk: Chunk, number: int) -> Sequence[Chunk]:
    try:
        around = read(chunk, number)
    except Exception as error:
        error.add_note(f"while the neighbours of a chunk ({chunk.label()}) were read")
        raise
    for neighbour in around:
        if not isinstance(neighbour, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects as neighbours, got {type(neighbour).__name__}", neighbour)
    if chunk.document_id is not None and counts_from_document(chunk.position):
        return [near for near in around if near.document_id in (None, chunk.document_id)]
    return around


class _Numbered(NamedTuple):
    """All chunks with ranks of their own, and for each kept one the ranks of those that were read for it.

    Attributes:
        chunks: The chunks.
        ranks: For each kept chunk the ranks of those that were read for it.
        altered: The ranks of retrieved chunks whose text is another than where they were read.
    """

    chunks: list[Chunk]
    ranks: dict[int, list[int]]
    altered: set[int]


def _numbered(
    retrieved: Sequence[Chunk], sources: dict[int, str | None], read_for: dict[int, Sequence[Chunk]]
) -> _Numbered:
    """Give chunks that were not retrieved the ranks after those that were; one with the same id comes once.

    A step after the search may have changed the text of a chunk, and it stays the same chunk.
    """
    chunks = list(retrieved)
    known: dict[tuple[str | None, str | None], int] = {
        (sources[chunk.rank], chunk.id): chunk.rank for chunk in reversed(chunks) if chunk.id is not None
    }
    free = 1 + max(chunk.rank for chunk in chunks)
    ranks: dict[int, list[int]] = {}
    texts = {chunk.rank: chunk.text for chunk in chunks}
    altered: set[int] = set()
    for anchor, around in read_for.items():
        ranks[anchor] = []
        for neighbour in around:
            name = (sources[anchor], neighbour.id)
            rank = known.get(name) if neighbour.id is not None else None
            if rank is None:
                rank, free = free, free + 1
                chunks.append(changed(neighbour, rank=rank))
                if neighbour.id is not None:
                    known[name] = rank
            elif texts.get(rank, neighbour.text) != neighbour.text:
                altered.add(rank)
            ranks[anchor].append(rank)
    return _Numbered(chunks, ranks, altered)


def _placed_together(before: Sequence[Chunk], chunks: Sequence[Chunk], options: ContextOptions) -> dict[int, Chunk]:
    """Each chunk by its rank; a copy of one, by source, position and text, stands for the first."""
    placed = place(chunks, options.source_key, options.position_key).chunks
    now = {chunk.rank: chunk for chunk in placed}
    spoilt = {chunk.source for chunk in before if _has_a_place(chunk) and not _has_a_place(now[chunk.rank])}
    if spoilt:
        warn(
            "the neighbours of retrieved chunks contradict their positions, so none are filled in for their sources: "
            "do read_neighbors and the retriever give the same chunks?",
            PositionWarning,
            cause="neighbors that contradict positions",
        )
    first: dict[Any, Chunk] = {}
    by_rank: dict[int, Chunk] = {}
    for chunk in placed:
        if chunk.source in spoilt:
            continue
        if _has_a_place(chunk):
            by_rank[chunk.rank] = first.setdefault((chunk.source, key_of(chunk), chunk.text), chunk)
        else:
            by_rank[chunk.rank] = chunk
    return by_rank | {chunk.rank: chunk for chunk in before if chunk.source in spoilt}


def _at_its_place(chunk: Chunk, by_rank: dict[int, Chunk]) -> Chunk:
    """A chunk as it was judged, placed with the knowledge of its neighbours."""
    placed = by_rank[chunk.rank]
    return changed(chunk, source=placed.source, position=placed.position, span=placed.span)


def _nearest(anchor: Chunk, around: Sequence[Chunk], number: int) -> Iterator[Chunk]:
    """So many chunks before and after this one; the nearest first, and of these the one before."""
    for chunk in around:
        if chunk.source != anchor.source:
            raise ChunkError(
                f"the neighbours of a chunk ({anchor.label()}) must be of its source, got one of "
                f"{describe(chunk.source)}",
                chunk,
            )
    if not _has_a_place(anchor):
        return
    key = key_of(anchor)
    ordered = sorted(filter(_has_a_place, around), key=key_of)
    before = [chunk for chunk in ordered if key_of(chunk) < key][::-1][:number]
    after = [chunk for chunk in ordered if key_of(chunk) > key][:number]
    for distance in range(max(len(before), len(after))):
        yield from before[distance : distance + 1]
        yield from after[distance : distance + 1]


def neighbors_among(
    chunks: Iterable[Chunk], *, source_key: SourceKey | None = None, position_key: PositionKey | None = None
) -> NeighborReader:
    """A function that finds the chunks around one in a list of all of them, to be used as `read_neighbors`.

    Args:
        chunks: All chunks of the sources, in any sequence; their ranks do not matter.
        source_key: See `ContextOptions.source_key`.
        position_key: See `ContextOptions.position_key`.
    """
    return _Among([changed(chunk, rank=row) for row, chunk in enumerate(chunks)], source_key, position_key)


class _Among:
    """Finds the chunks around one by its place in its source."""

    def __init__(self, chunks: list[Chunk], source_key: SourceKey | None, position_key: PositionKey | None) -> None:
        self._chunks = chunks
        self._where: dict[int, tuple[list[int], int]] = {}
        for group in group_by_source(place(chunks, source_key, position_key).chunks):
            # A source that was added twice has copies of its chunks, which are at the places of the first ones.
            row: list[int] = []
            places: dict[Any, int] = {}
            for chunk in sorted(filter(_has_a_place, group), key=key_of):
                name = key_of(chunk), chunk.text
                if name not in places:
                    places[name] = len(row)
                    row.append(chunk.rank)
                self._where[chunk.rank] = row, places[name]
        self._rows: dict[Any, list[int]] = {}
        for chunk in chunks:
            self._rows.setdefault(_name(chunk), []).append(chunk.rank)

    def __call__(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        row = _row(chunk, [self._chunks[row] for row in self._rows.get(_name(chunk), ())])
        if row is None or row not in self._where:
            return []
        group, at = self._where[row]
        return [self._chunks[near] for near in group[max(0, at - number) : at + number + 1]]


def _name(chunk: Chunk) -> tuple[str | None, str]:
    return chunk.id, chunk.text


def _row(chunk: Chunk, alike: Sequence[Chunk]) -> int | None:
    """Which of several chunks with the same id and text this is, by its metadata."""
    if len(alike) < 2:
        return alike[0].rank if alike else None
    for other in alike:
        if all(chunk.metadata.get(name) == value for name, value in other.metadata.items()):
            return other.rank
    return None
