"""Chroma, in a temporary folder."""

from __future__ import annotations

import tempfile
from typing import Any

from oprag.compare.stores.empty import EmptyStore, new_name
from oprag.compare.stores.store import MissingStoreError

__all__ = ["open_empty"]

# Its graph is searched wide enough to find the nearest of a book, up to so many of them.
_GRAPH = {"space": "cosine", "ef_construction": 400, "ef_search": 2_000}


def open_empty(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """An empty collection; its search by a graph is approximate.

    Raises:
        MissingStoreError: Its package is not installed.
    """
    try:
        import chromadb
        from chromadb.config import Settings
        from langchain_chroma import Chroma
    except ImportError as error:
        raise MissingStoreError("chroma", "langchain-chroma") from error
    # Not in memory: all clients in the memory of a process share one database, and must have the same settings.
    folder = tempfile.TemporaryDirectory(prefix="oprag-chroma-", ignore_cleanup_errors=True)
    client = chromadb.PersistentClient(folder.name, Settings(anonymized_telemetry=False))

    def close() -> None:
        client.close()
        folder.cleanup()

    store = Chroma(new_name(), embeddings, client=client, collection_configuration={"hnsw": _GRAPH})
    return EmptyStore(store, close, at_once=min(1_000, client.get_max_batch_size()))
