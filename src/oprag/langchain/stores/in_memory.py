"""LangChain's store in memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    rows = (store.store[key] for key in keys if key in store.store)
    return {row["id"]: Record(row["vector"], row["text"]) for row in rows}


async def _aread(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:
    # A look into a dictionary is not worth a thread.
    return _read(store, keys, search)


ADAPTER = StoreAdapter(_read, _aread, by_vector="similarity_search_with_score_by_vector")
