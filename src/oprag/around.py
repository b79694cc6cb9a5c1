"""Neighbours from a list of all chunks of some sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from oprag.arrange import key_of
from oprag.chunk import Chunk, changed
from oprag.neighbors import NeighborReader
from oprag.place import group_by_source, place
from oprag.position import PositionKey
from oprag.source import SourceKey

__all__ = ["neighbors_among"]


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
        placed = place(chunks, source_key, position_key).chunks
        sources = [sorted(group, key=key_of) for group in group_by_source(placed)]
        self._where = {
            chunk.rank: ([one.rank for one in group], at) for group in sources for at, chunk in enumerate(group)
        }
        self._rows: dict[Any, list[int]] = {}
        for chunk in chunks:
            self._rows.setdefault(_name(chunk), []).append(chunk.rank)

    def __call__(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        row = _row(chunk, [self._chunks[row] for row in self._rows.get(_name(chunk), ())])
        if row is None:
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
