"""LanceDB, in a temporary folder."""

from __future__ import annotations

import tempfile
from typing import Any

from oprag.compare.stores.empty import EmptyStore, new_name
from oprag.compare.stores.store import MissingStoreError

__all__ = ["open_empty"]


def open_empty(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """An empty table; without an index in it, its search is exact.

    Raises:
        MissingStoreError: Its package is not installed.
    """
    try:
        import lancedb
        from langchain_community.vectorstores import LanceDB
    except ImportError as error:
        raise MissingStoreError("lancedb", "langchain-community lancedb") from error
    folder = tempfile.TemporaryDirectory(prefix="oprag-lancedb-", ignore_cleanup_errors=True)
    store = LanceDB(lancedb.connect(folder.name), embeddings, table_name=new_name(), mode="append", distance="cosine")
    # The distance of the store is that of its relevance scores alone; a search needs to be told.
    return EmptyStore(store, folder.cleanup, search={"metrics": "cosine"})
