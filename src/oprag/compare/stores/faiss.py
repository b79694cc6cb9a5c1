"""FAISS, in memory."""

from __future__ import annotations

from typing import Any

from oprag.compare.stores.empty import EmptyStore
from oprag.compare.stores.store import MissingStoreError

__all__ = ["open_empty"]


def open_empty(embeddings: Any, dimension: int) -> EmptyStore:
    """An empty flat index of inner products, which are cosines of the unit vectors that are put in.

    Raises:
        MissingStoreError: Its package is not installed.
    """
    try:
        import faiss
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS
        from langchain_community.vectorstores.utils import DistanceStrategy
    except ImportError as error:
        raise MissingStoreError("faiss", "langchain-community faiss-cpu") from error
    store = FAISS(
        embeddings,
        faiss.IndexFlatIP(dimension),
        InMemoryDocstore(),
        {},
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
    return EmptyStore(store)
