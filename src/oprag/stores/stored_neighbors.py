"""Reads the neighbors of a chunk from the store that was searched, without a `read_neighbors` function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from oprag.chunk import Chunk, Place, changed
from oprag.options import ContextOptions
from oprag.pipeline.neighbors import NeighborReader, neighbors_among
from oprag.positions.source_names import field_of
from oprag.positions.source_order import Listing, order_of
from oprag.stores.adapter import StoreAdapter, StoredChunk
from oprag.stores.listing import chunks_in_search, each_once
from oprag.stores.orders import PlacesOfSource

__all__ = ["StoredNeighbors"]


@dataclass(frozen=True)
class StoredNeighbors:
    """Reads the neighbors of a chunk from its source, which is listed once; create a new one for each question."""

    store: StoreAdapter
    options: ContextOptions
    as_chunk: Callable[[StoredChunk, int], Chunk]  # with the given rank
    store_order: bool
    place_of: PlacesOfSource | None = None  # those that were decided for the retrieved chunks
    _sources: dict[tuple[str, str], tuple[dict[str, list[Chunk]], NeighborReader]] = field(
        default_factory=dict, init=False
    )

    def with_places(self, place_of: PlacesOfSource) -> StoredNeighbors:
        """Return a copy of this reader that uses the places that were decided for the retrieved chunks."""
        return replace(self, place_of=place_of)

    def __call__(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        """Return the chunk with up to `number` chunks before and after it."""
        name = field_of([chunk], self.options.source_key), chunk.source or ""
        if not all(name):
            return []
        if name not in self._sources:
            self._sources[name] = self._listed(*name)
        by_key, read = self._sources[name]
        alike = by_key.get(self.store.key(chunk) or "", [])
        # Use the chunk as it was indexed: a postprocessor may have replaced a sentence by its window. If the key is not
        # unique (texts can be keys), use the retrieved chunk: its metadata tell chunks with equal texts apart.
        return list(read(alike[0] if len(alike) == 1 else chunk, number)) if alike else []

    def _listed(self, field: str, source: str) -> tuple[dict[str, list[Chunk]], NeighborReader]:
        """Return the chunks of a source by key, and a reader of their neighbors."""
        stored = list(each_once(chunks_in_search(self.store, field, [source]) or ()))
        chunks = [changed(self.as_chunk(one, rank), source=source) for rank, one in enumerate(stored)]
        places: Sequence[Place | None] = [self.place_of and self.place_of(source, chunk) for chunk in chunks]
        if None in places:
            in_sequence = self.store_order and self.store.in_insertion_order
            places = order_of(Listing(chunks, in_sequence, complete=True, store=self.store.name)).places
        chunks = [changed(chunk, place=place) for chunk, place in zip(chunks, places, strict=True)]
        by_key: dict[str, list[Chunk]] = {}
        for one, chunk in zip(stored, chunks, strict=True):
            by_key.setdefault(one.key, []).append(chunk)
        reader = neighbors_among(chunks, source_key=self.options.source_key, position_key=self.options.position_key)
        return by_key, reader
