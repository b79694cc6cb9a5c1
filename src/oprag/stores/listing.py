"""Listing all chunks of the sources that retrieved chunks are from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from oprag.chunk import Chunk
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.sources import SourceKey, field_of
from oprag.stores.adapter import StoreAdapter, has_own_adapter
from oprag.stores.llama_index_nodes import source_in

__all__ = ["all_texts", "chunks_of_sources", "each_once"]


def chunks_of_sources(store: StoreAdapter, field: str, sources: Collection[str]) -> dict[str, list[StoredChunk]] | None:
    """All chunks of sources, by source; None where the store cannot list them."""
    listed = store.chunks(field, sources) if field and has_own_adapter(store.store) else None
    if listed is None:
        return None
    chunks: dict[str, list[StoredChunk]] = {source: [] for source in sources}
    for chunk in listed:
        chunks[source_in(chunk, field) or ""].append(chunk)
    return chunks


def all_texts(chunks: Sequence[Chunk], stores: Collection[StoreAdapter], source_key: SourceKey | None) -> list[str]:
    """The texts of all chunks of a source, from the first store that has those that were retrieved."""
    source, field = chunks[0].source, field_of(chunks, source_key)
    for store in stores:
        listed = None if source is None else chunks_of_sources(store, field, [source])
        texts = [chunk.text for chunk in (listed or {}).get(source or "", [])]
        if {chunk.text for chunk in chunks}.issubset(texts):
            return texts
    return []


def each_once(stored: Iterable[StoredChunk]) -> Iterator[StoredChunk]:
    """The chunks, without nodes that were added again under their ids: these are one to the store."""
    seen: set[tuple[str, str]] = set()
    for one in stored:
        if one.node is None or (one.key, one.text) not in seen:
            seen.add((one.key, one.text))
            yield one
