"""Qdrant in its local mode, in memory."""

from __future__ import annotations

from typing import Any

from oprag.compare.stores.empty import EmptyStore, new_name
from oprag.compare.stores.store import MissingStoreError

__all__ = ["open_empty"]


def open_empty(embeddings: Any, dimension: int) -> EmptyStore:
    """An empty collection.

    Raises:
        MissingStoreError: Its package is not installed.
    """
    try:
        from langchain_qdrant import QdrantVectorStore
        from qdrant_client import QdrantClient
        from qdrant_client.models import Distance, VectorParams
    except ImportError as error:
        raise MissingStoreError("qdrant", "langchain-qdrant") from error
    client = QdrantClient(":memory:")
    name = new_name()
    client.create_collection(name, vectors_config=VectorParams(size=dimension, distance=Distance.COSINE))
    store = QdrantVectorStore(client, name, embeddings, validate_collection_config=False)
    # Its ids are whole numbers or UUIDs. The local mode says nothing of threads.
    return EmptyStore(store, client.close, key=int, threads=False)
