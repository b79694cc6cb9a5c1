"""Lists all chunks of the sources of retrieved chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from oprag.chunk import Chunk
from oprag.positions.fields import ID_FIELDS
from oprag.positions.insertion_order import ListedSource, StoredChunk, occurrences
from oprag.positions.placing import place
from oprag.positions.sources import SourceKey, field_of
from oprag.stores.adapter import StoreAdapter, has_own_adapter
from oprag.stores.llama_index_nodes import source_in

__all__ = ["all_chunks", "can_list", "chunks_in_search", "chunks_of_sources", "each_once"]


def chunks_in_search(
    store: StoreAdapter, field: str = "", sources: Collection[str] = ()
) -> Iterable[StoredChunk] | None:
    """Return the chunks that a search can find, as `StoreAdapter.chunks`; None if they cannot be listed."""
    return store.chunks(field, sources) if store.restrictions.issubset(store.filters) else None


def can_list(store: StoreAdapter) -> bool:
    """Return whether the chunks that a search can find can be listed and shown; nothing is read for this."""
    # Without sources, `chunks` only tells whether listing is supported.
    return has_own_adapter(store.store) and chunks_in_search(store, ID_FIELDS[0]) is not None


def chunks_of_sources(store: StoreAdapter, field: str, sources: Collection[str]) -> dict[str, list[StoredChunk]] | None:
    """Return all chunks of sources, by source; None if the store cannot list them."""
    listed = chunks_in_search(store, field, sources) if field and has_own_adapter(store.store) else None
    if listed is None:
        return None
    chunks: dict[str, list[StoredChunk]] = {source: [] for source in sources}
    for chunk in listed:
        chunks[source_in(chunk, field) or ""].append(chunk)
    return chunks


def all_chunks(
    chunks: Sequence[Chunk], stores: Collection[StoreAdapter], source_key: SourceKey | None, *, store_order: bool
) -> ListedSource | None:
    """Return all chunks of a source from the first store that contains the retrieved ones; None if no store does.

    Args:
        chunks: Retrieved chunks of the source.
        stores: The stores that were searched.
        source_key: See `ContextOptions.source_key`.
        store_order: Whether to use insertion order.
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
    """Yield the chunks, skipping LlamaIndex nodes that were added again with the same id and text."""
    seen: set[tuple[str, str]] = set()
    for one in stored:
        if one.node is None or (one.key, one.text) not in seen:
            seen.add((one.key, one.text))
            yield one
