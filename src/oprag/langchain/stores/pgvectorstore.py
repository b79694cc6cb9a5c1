"""PGVectorStore, the newer of the two stores over PostgreSQL."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from oprag.langchain.stores.adapter import StoreAdapter
from oprag.vector_sources import Record

__all__ = ["ADAPTER"]

_WANTED = ["embeddings", "documents"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    return _records(store.get(ids=list(keys), include=_WANTED))


async def _aread(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    return _records(await store.aget(ids=list(keys), include=_WANTED))


def _records(found: Mapping[str, Any]) -> dict[str, Record]:
    rows = zip(found["ids"], found["embeddings"], found["documents"], strict=True)
    # Vectors come as PostgreSQL writes them, which is a list in JSON.
    return {
        str(key): Record(json.loads(vector) if isinstance(vector, str) else vector, text) for key, vector, text in rows
    }


def _alike(store: Any, search: Mapping[str, Any]) -> bool:
    """Whether words are not looked at."""
    inner = getattr(store, "_PGVectorStore__vs", store)
    return search.get("hybrid_search_config") is None and getattr(inner, "hybrid_search_config", None) is None


ADAPTER = StoreAdapter(_read, _aread, by_vector="similarity_search_with_score_by_vector", alike=_alike)
