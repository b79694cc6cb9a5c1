"""PostgreSQL with pgvector."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.llama_index.stores.adapter import Searched, StoreAdapter

__all__ = ["ADAPTER"]


def _read(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    store = searched.vector_store
    store._initialize()  # noqa: SLF001 - makes the session, as the store's own methods do
    with store._session() as session:  # noqa: SLF001
        return _records(session.execute(_statement(store, ids)))


async def _aread(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    store = searched.vector_store
    store._initialize()  # noqa: SLF001
    async with store._async_session() as session:  # noqa: SLF001
        return _records(await session.execute(_statement(store, ids)))


def _statement(store: Any, ids: Sequence[str]) -> Any:
    from sqlalchemy import select

    rows = store._table_class  # noqa: SLF001
    return select(rows.node_id, rows.text, rows.embedding).where(rows.node_id.in_(list(ids)))


def _records(rows: Iterable[Any]) -> dict[str, Record]:
    return {row.node_id: Record(_numbers(row.embedding), row.text) for row in rows}


def _numbers(vector: Any) -> Any:
    """The numbers of a vector, which comes as a text, as an object of pgvector or as an array."""
    if isinstance(vector, str):
        return json.loads(vector)
    return vector.to_list() if hasattr(vector, "to_list") else vector


ADAPTER = StoreAdapter(_read, _aread)
