"""PGVectorStore, the newer of the two stores over PostgreSQL."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]

_WANTED = ["embeddings", "documents"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    from sqlalchemy.exc import DBAPIError

    try:
        found = store.get(ids=list(keys), include=_WANTED)
    except DBAPIError as error:
        found = store.get(ids=_as_numbers(keys, error), include=_WANTED)
    return _records(found)


async def _aread(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    from sqlalchemy.exc import DBAPIError

    try:
        found = await store.aget(ids=list(keys), include=_WANTED)
    except DBAPIError as error:
        found = await store.aget(ids=_as_numbers(keys, error), include=_WANTED)
    return _records(found)


def _as_numbers(keys: Sequence[str], error: Exception) -> list[int]:
    """Ids for a column of numbers: documents have them as text, which the driver asyncpg does not take for a number."""
    if not all(key.isdecimal() for key in keys):
        raise error
    return [int(key) for key in keys]


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
