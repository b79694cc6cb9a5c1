"""Pinecone."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]

# Ids stand in the address of a request, which must not grow too long.
_AT_ONCE = 100


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:
    space = _namespace(store, search)
    return _records(store, [store.index.fetch(ids=part, namespace=space) for part in _parts(keys)])


async def _aread(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:
    space = _namespace(store, search)
    # The store's own way to its async client, which is closed behind each use.
    async with store._async_index_context() as index:  # noqa: SLF001
        return _records(store, await asyncio.gather(*(index.fetch(ids=part, namespace=space) for part in _parts(keys))))


def _namespace(store: Any, search: Mapping[str, Any]) -> str | None:
    own: str | None = store._namespace  # noqa: SLF001 - the store says nowhere else
    return own if search.get("namespace") is None else search["namespace"]


def _parts(keys: Sequence[str]) -> list[list[str]]:
    return [list(keys[start : start + _AT_ONCE]) for start in range(0, len(keys), _AT_ONCE)]


def _records(store: Any, parts: Iterable[Any]) -> dict[str, Record]:
    text = store._text_key  # noqa: SLF001
    return {
        key: Record(found.values, (found.metadata or {}).get(text))
        for part in parts
        for key, found in part.vectors.items()
    }


ADAPTER = StoreAdapter(_read, _aread, by_vector="similarity_search_by_vector_with_score")
