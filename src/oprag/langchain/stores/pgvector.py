"""PGVector, the older of the two stores over PostgreSQL."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    with store.session_maker() as session:
        return _records(session.execute(_statement(store, keys)))


async def _aread(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:
    if not store.async_mode:
        return await asyncio.to_thread(_read, store, keys, search)
    async with store.session_maker() as session:
        return _records(await session.execute(_statement(store, keys)))


def _statement(store: Any, keys: Sequence[str]) -> Any:
    from sqlalchemy import select

    rows, collections = store.EmbeddingStore, store.CollectionStore
    return (
        select(rows.id, rows.embedding, rows.document)
        .join(collections, rows.collection_id == collections.uuid)
        .where(collections.name == store.collection_name, rows.id.in_(list(keys)))
    )


def _records(rows: Iterable[Any]) -> dict[str, Record]:
    return {row.id: Record(row.embedding, row.document) for row in rows}


ADAPTER = StoreAdapter(_read, _aread, by_vector="similarity_search_with_score_by_vector")
