"""Our own index."""

from collections.abc import Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    if store.embedder is None:
        return {}
    chunks, vectors = store.chunks, store.vectors
    rows = (int(key) for key in keys if key.isdecimal() and int(key) < len(chunks))
    return {str(row): Record(vectors[row], chunks[row].text) for row in rows}


async def _aread(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:
    return _read(store, keys, search)


ADAPTER = StoreAdapter(_read, _aread)
