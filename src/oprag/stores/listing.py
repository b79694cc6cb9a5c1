"""Listing all chunks of the sources that retrieved chunks are from."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oprag.chunk import Chunk
from oprag.positions.insertion import StoredChunk
from oprag.positions.sources import ID_FIELDS, SOURCE_FIELDS, SourceKey
from oprag.stores.adapter import StoreAdapter, has_own_adapter
from oprag.stores.nodes import source_in

__all__ = ["all_texts", "chunks_of_sources", "source_field"]


def source_field(chunks: Sequence[Chunk], source_key: SourceKey | None) -> str:
    """The key by which a store lists the source of all of these chunks; empty where no key has its name."""
    named = () if source_key is None or callable(source_key) else source_key
    fields: tuple[str, ...] = (*([named] if isinstance(named, str) else named), *SOURCE_FIELDS)
    for field in fields:
        if all(chunk.metadata.get(field) == chunk.source for chunk in chunks):
            return field
    return ID_FIELDS[0] if all(chunk.document_id == chunk.source for chunk in chunks) else ""


def chunks_of_sources(store: StoreAdapter, field: str, sources: Collection[str]) -> dict[str, list[StoredChunk]] | None:
    """All chunks of sources, by source; None where the store cannot list them."""
    listed = store.chunks(field, sources) if field and has_own_adapter(store.store) else None
    if listed is None:
        return None
    chunks: dict[str, list[StoredChunk]] = {source: [] for source in sources}
    for chunk in listed:
        chunks[source_in(chunk, field)].append(chunk)
    return chunks


def all_texts(chunks: Sequence[Chunk], stores: Collection[StoreAdapter], source_key: SourceKey | None) -> list[str]:
    """The texts of all chunks of a source, from the first store that has those that were retrieved."""
    source, field = chunks[0].source, source_field(chunks, source_key)
    for store in stores:
        listed = None if source is None else chunks_of_sources(store, field, [source])
        texts = [chunk.text for chunk in (listed or {}).get(source or "", [])]
        if {chunk.text for chunk in chunks}.issubset(texts):
            return texts
    return []
