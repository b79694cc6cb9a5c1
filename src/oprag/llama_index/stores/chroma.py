"""Chroma."""

from collections.abc import Mapping, Sequence

from oprag.embedding.vectors import Record
from oprag.llama_index.stores.adapter import Searched, StoreAdapter

__all__ = ["ADAPTER"]


def _read(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    # The store's client is a collection.
    found = searched.vector_store.client.get(ids=list(ids), include=["embeddings", "documents"])
    rows = zip(found["ids"], found["embeddings"], found["documents"], strict=True)
    return {name: Record(vector, text) for name, vector, text in rows}


ADAPTER = StoreAdapter(_read)
