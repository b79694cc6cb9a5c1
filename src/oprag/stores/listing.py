"""Lists the chunks that a search can find."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from oprag.chunk import Chunk
from oprag.positions.fields import ID_FIELDS
from oprag.positions.retrieved import SearchedStore
from oprag.stores.adapter import StoreAdapter, StoredChunk, has_own_adapter
from oprag.stores.llama_index_nodes import NODE_FIELD

__all__ = ["can_list", "chunk_of_row", "chunks_in_search", "chunks_of_rows", "each_once", "searched_store"]


def searched_store(stores: Sequence[StoreAdapter], check: str, option: str = "position_key") -> SearchedStore:
    """Describe the searched stores for warnings, with the call that checks them if one of them can be listed."""
    listable = any(type(store).chunks is not StoreAdapter.chunks for store in stores)
    return SearchedStore(" ".join(str(id(store.store)) for store in stores), check if listable else "", option)


def chunks_in_search(
    store: StoreAdapter, field: str = "", sources: Collection[str] = ()
) -> Iterable[StoredChunk] | None:
    """Return the chunks that a search can find, as `StoreAdapter.chunks`; None if they cannot be listed."""
    rows = store.chunks(field, sources) if store.restrictions.issubset(store.filters) else None
    documents = store.search.get("doc_ids")
    if rows is None or documents is None:
        return rows
    return (row for row in rows if row.node.ref_doc_id in documents)


def can_list(store: StoreAdapter) -> bool:
    """Return whether the chunks that a search can find can be listed and shown; nothing is read for this."""
    # Without sources, `chunks` only tells whether listing is supported.
    return has_own_adapter(store.store) and chunks_in_search(store, ID_FIELDS[0]) is not None


def each_once(stored: Iterable[StoredChunk]) -> Iterator[StoredChunk]:
    """Yield the chunks, skipping LlamaIndex nodes that were added again with the same id and text."""
    seen: set[tuple[str, str]] = set()
    for one in stored:
        if one.node is None or (one.key, one.text) not in seen:
            seen.add((one.key, one.text))
            yield one


def chunk_of_row(row: StoredChunk, rank: int) -> Chunk:
    """Convert a row of a store to a chunk with the given rank."""
    if row.node is None and NODE_FIELD not in row.metadata:
        return row.as_chunk(rank)
    # Imports LlamaIndex.
    from oprag.stores.llama_index_chunks import chunk_of, node_of_row

    node = node_of_row(row)
    return chunk_of(node, rank, origin=node)


def chunks_of_rows(rows: Iterable[StoredChunk]) -> Iterator[Chunk]:
    """Convert the rows of a store to chunks, ranked as listed."""
    return (chunk_of_row(row, rank) for rank, row in enumerate(rows))
