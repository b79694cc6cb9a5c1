"""What vector stores do in ways of their own: giving vectors by id, and searching by a vector.

A store that is not here works as well: vectors are then made by its embedder and kept in the cache. An adapter is a
module with one function, and a line in the table below; for a store of your own it is a call of `register_store`.
"""

from __future__ import annotations

from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter
from oprag.stores.adapter_table import AdapterTable

__all__ = ["Record", "StoreAdapter", "adapter_of", "register_store"]

# By module and class, so that no store is imported for this.
_TABLE = AdapterTable(
    StoreAdapter,
    __name__,
    {
        "oprag.DocumentIndex": "document_index",
        "oprag.index.document_index.DocumentIndex": "document_index",
        "langchain_core.vectorstores.in_memory.InMemoryVectorStore": "in_memory",
        "langchain_chroma.vectorstores.Chroma": "chroma",
        "langchain_community.vectorstores.faiss.FAISS": "faiss",
        "langchain_community.vectorstores.lancedb.LanceDB": "lancedb",
        "langchain_pinecone.vectorstores.PineconeVectorStore": "pinecone",
        "langchain_postgres.vectorstores.PGVector": "pgvector",
        "langchain_postgres.v2.vectorstores.PGVectorStore": "pgvectorstore",
        "langchain_qdrant.qdrant.QdrantVectorStore": "qdrant",
    },
)


def register_store(store_class: type, adapter: StoreAdapter) -> None:
    """Say how vectors of a store are read.

    Args:
        store_class: The class of the store; it holds for its subclasses too.
        adapter: What the store does.

    Raises:
        OptionError: `adapter` is no `StoreAdapter`.

    Example:
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> class MyStore(InMemoryVectorStore):
        ...     pass
        >>> def read(store, keys, search):
        ...     rows = (store.store[key] for key in keys if key in store.store)
        ...     return {row["id"]: Record(row["vector"], row["text"]) for row in rows}
        >>> register_store(MyStore, StoreAdapter(read))
    """
    _TABLE.register(store_class, adapter)


def adapter_of(store: Any) -> StoreAdapter | None:
    """The adapter for a store, None where there is none."""
    return _TABLE.of(store)
