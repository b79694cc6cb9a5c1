"""Listing all chunks of the sources that retrieved chunks are from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from oprag.chunk import Chunk
from oprag.positions.insertion_order import ListedSource, StoredChunk, occurrences
from oprag.positions.placing import place
from oprag.positions.sources import SourceKey, field_of
from oprag.stores.adapter import StoreAdapter, has_own_adapter
from oprag.stores.llama_index_nodes import source_in

__all__ = ["all_chunks", "chunks_of_sources", "each_once"]


def chunks_of_sources(store: StoreAdapter, field: str, sources: Collection[str]) -> dict[str, list[StoredChunk]] | None:
    """All chunks of sources, by source; None where the store cannot list them."""
    listed = store.chunks(field, sources) if field and has_own_adapter(store.store) else None
    if listed is None:
        return None
    chunks: dict[str, list[StoredChunk]] = {source: [] for source in sources}
    for chunk in listed:
        chunks[source_in(chunk, field) or ""].append(chunk)
    return chunks


def all_chunks(
    chunks: Sequence[Chunk], stores: Collection[StoreAdapter], source_key: SourceKey | None, *, store_order: bool
) -> ListedSource | None:
    """All chunks of a source, from the first store that has those that were retrieved; None where no store lists them.

    Args:
        chunks: Retrieved chunks of the source.
        stores: What was searched.
        source_key: See `ContextOptions.source_key`.
        store_order: Whether the sequence of the store is used.
    """
    source, field = chunks[0].source, field_of(chunks, source_key)
    for store in stores:
        listed = None if source is None else chunks_of_sources(store, field, [source])
        stored = list(each_once((listed or {}).get(source or "", [])))
        if stored and {chunk.text for chunk in chunks}.issubset(one.text for one in stored):
            placed = place([one.as_chunk(rank) for rank, one in enumerate(stored)], source_key, None).chunks
            keys = occurrences(one.key for one in stored)
            return ListedSource(placed, keys, store.key, store_order and store.in_insertion_order)
    return None


def each_once(stored: Iterable[StoredChunk]) -> Iterator[StoredChunk]:
    """The chunks, without nodes that were added again under their ids: these are one to the store."""
    seen: set[tuple[str, str]] = set()
    for one in stored:
        if one.node is None or (one.key, one.text) not in seen:
            seen.add((one.key, one.text))
            yield one
