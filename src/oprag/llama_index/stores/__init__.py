"""How LlamaIndex's vector stores give vectors by the ids of nodes, which its retrievers do not.

A store that is not here works as well: vectors are then made by the embedding model and kept in the cache. An adapter
is a module with one function, and a line in the table below; for a store of your own it is a call of `register_store`.
"""

from __future__ import annotations

from typing import Any

from oprag.embedding.vectors import Record
from oprag.llama_index.stores.adapter import Searched, StoreAdapter
from oprag.stores.adapter_table import AdapterTable

__all__ = ["Record", "Searched", "StoreAdapter", "adapter_of", "register_store"]

# By module and class, so that no store is imported for this.
_TABLE = AdapterTable(
    StoreAdapter,
    __name__,
    {
        "llama_index.core.vector_stores.simple.SimpleVectorStore": "simple",
        "llama_index.vector_stores.chroma.base.ChromaVectorStore": "chroma",
        "llama_index.vector_stores.faiss.base.FaissVectorStore": "faiss",
        "llama_index.vector_stores.postgres.base.PGVectorStore": "postgres",
        "llama_index.vector_stores.qdrant.base.QdrantVectorStore": "qdrant",
    },
)


def register_store(store_class: type, adapter: StoreAdapter) -> None:
    """Say how vectors of a store are read.

    Args:
        store_class: The class of the store; it holds for its subclasses too.
        adapter: What the store does.

    Raises:
        OptionError: `adapter` is no `StoreAdapter`.
    """
    _TABLE.register(store_class, adapter)


def adapter_of(store: Any) -> StoreAdapter | None:
    """The adapter for a store, None where there is none."""
    return _TABLE.of(store)
