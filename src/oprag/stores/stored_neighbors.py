"""Reads the neighbors of a chunk from the store that was searched, without a `read_neighbors` function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from oprag.assembly.neighbors import NeighborReader, neighbors_among
from oprag.chunk import Chunk, changed
from oprag.options import ContextOptions
from oprag.positions.insertion_order import StoredChunk, places_in_store
from oprag.positions.placing import place, without_order
from oprag.positions.sources import field_of
from oprag.stores.adapter import StoreAdapter
from oprag.stores.listing import can_list, each_once

__all__ = ["StoredNeighbors", "stored_neighbors"]


class LocateAll(Protocol):
    """Locates all chunks of a source in its text."""

    def __call__(self, source: str, chunks: Sequence[Chunk], *, in_sequence: bool) -> list[Chunk]:
        """Return the chunks with `located` set.

        Args:
            source: The source.
            chunks: All of its chunks.
            in_sequence: Whether the chunks are in insertion order.
        """


def stored_neighbors(
    store: StoreAdapter,
    options: ContextOptions,
    as_chunk: Callable[[StoredChunk, int], Chunk],
    passes: Callable[[StoredChunk], bool] = lambda _: True,
    *,
    store_order: bool,
) -> StoredNeighbors | None:
    """Return a reader of neighbors from a store; None if the store cannot list the chunks that it searches.

    Args:
        store: The store that was searched, with its filter.
        options: How sources and positions are found.
        as_chunk: Converts a stored chunk to a `Chunk` with the given rank.
        passes: A restriction of the search in addition to its filter.
        store_order: Whether to use insertion order.
    """
    return StoredNeighbors(store, options, as_chunk, passes, store_order=store_order) if can_list(store) else None


class StoredNeighbors:
    """Reads the neighbors of a chunk from its source, which is listed once; create a new one for each question."""

    def __init__(
        self,
        store: StoreAdapter,
        options: ContextOptions,
        as_chunk: Callable[[StoredChunk, int], Chunk],
        passes: Callable[[StoredChunk], bool],
        *,
        store_order: bool,
        locate: LocateAll | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._keys = options.source_key, options.position_key
        self._as_chunk = as_chunk
        self._passes = passes
        self._store_order = store_order and store.in_insertion_order
        self._locate = locate
        self._sources: dict[tuple[str, str], tuple[dict[str, list[Chunk]], NeighborReader]] = {}

    def locating(self, locate: LocateAll, otherwise: NeighborReader) -> StoredNeighbors:  # noqa: ARG002
        """Return a copy of this reader that locates all chunks of uncertain order in the text of their source.

        Args:
            locate: Locates the chunks.
            otherwise: Unused; a reader for callers that cannot list whole sources.
        """
        return StoredNeighbors(
            self._store, self._options, self._as_chunk, self._passes, store_order=self._store_order, locate=locate
        )

    def __call__(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        """Return the chunk with up to `number` chunks before and after it."""
        name = field_of([chunk], self._keys[0]), chunk.source or ""
        if not all(name):
            return []
        if name not in self._sources:
            self._sources[name] = self._listed(*name)
        by_key, read = self._sources[name]
        alike = by_key.get(self._store.key(chunk) or "", [])
        # Use the chunk as it was indexed: a postprocessor may have replaced a sentence by its window. If the key is not
        # unique (texts can be keys), use the retrieved chunk: its metadata tell chunks with equal texts apart.
        return list(read(alike[0] if len(alike) == 1 else chunk, number)) if alike else []

    def _listed(self, field: str, source: str) -> tuple[dict[str, list[Chunk]], NeighborReader]:
        """Return the chunks of a source by key, and a reader of their neighbors."""
        stored = list(each_once(filter(self._passes, self._store.chunks(field, [source]) or ())))
        chunks = [self._as_chunk(one, rank) for rank, one in enumerate(stored)]
        if self._locate and without_order(place(chunks, *self._keys), minimum=1, by_store=True):
            placed = place(chunks, *self._keys).chunks
            found = self._locate(source, placed, in_sequence=self._store_order)
            chunks = [changed(chunk, located=at.located) for chunk, at in zip(chunks, found, strict=True)]
        if self._store_order and without_order(place(chunks, *self._keys), minimum=1):
            places, refuted = places_in_store(chunks, self._store.name)
            if not refuted:
                chunks = [changed(chunk, store_place=at) for chunk, at in zip(chunks, places, strict=True)]
        by_key: dict[str, list[Chunk]] = {}
        for one, chunk in zip(stored, chunks, strict=True):
            by_key.setdefault(one.key, []).append(chunk)
        return by_key, neighbors_among(chunks, source_key=self._keys[0], position_key=self._keys[1])
