"""PostgreSQL with pgvector: LangChain's `PGVector` and `PGVectorStore`, LlamaIndex's `PGVectorStore`."""

import json
from asyncio import to_thread
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprag.stores.adapter import StoreAdapter, StoredVector

__all__ = ["LangChainPGVector", "LangChainPGVectorStore", "LlamaIndexPGVectorStore"]


class LangChainPGVector(StoreAdapter):
    """LangChain's `PGVector`, the older of its two stores; it is sync or async, as it was made."""

    by_vector = "similarity_search_with_score_by_vector"

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by id."""
        with self.store.session_maker() as session:
            return _stored(session.execute(self._query(keys)))

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`, with the async client if it has one."""
        if not self.store.async_mode:
            return await to_thread(self.vectors, keys)
        async with self.store.session_maker() as session:
            return _stored(await session.execute(self._query(keys)))

    def _query(self, keys: Sequence[str]) -> Any:
        from sqlalchemy import select

        rows, collections = self.store.EmbeddingStore, self.store.CollectionStore
        return (
            select(rows.id, rows.embedding, rows.document)
            .join(collections, rows.collection_id == collections.uuid)
            .where(collections.name == self.store.collection_name, rows.id.in_(list(keys)))
        )


class LangChainPGVectorStore(StoreAdapter):
    """LangChain's `PGVectorStore`, the newer of its two stores."""

    by_vector = "similarity_search_with_score_by_vector"

    @property
    def dense(self) -> bool:
        """Whether this search compares vectors only."""
        inner = getattr(self.store, "_PGVectorStore__vs", self.store)
        return self.search.get("hybrid_search_config") is None and getattr(inner, "hybrid_search_config", None) is None

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by id."""
        from sqlalchemy.exc import DBAPIError

        try:
            found = self.store.get(ids=list(keys), include=_WANTED)
        except DBAPIError as error:
            found = self.store.get(ids=_as_numbers(keys, error), include=_WANTED)
        return _stored(zip(found["ids"], found["embeddings"], found["documents"], strict=True))

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`, with the async client."""
        from sqlalchemy.exc import DBAPIError

        try:
            found = await self.store.aget(ids=list(keys), include=_WANTED)
        except DBAPIError as error:
            found = await self.store.aget(ids=_as_numbers(keys, error), include=_WANTED)
        return _stored(zip(found["ids"], found["embeddings"], found["documents"], strict=True))


class LlamaIndexPGVectorStore(StoreAdapter):
    """LlamaIndex's `PGVectorStore`."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of nodes by id."""
        self.store._initialize()  # noqa: SLF001 - makes the session, as the store's own methods do
        with self.store._session() as session:  # noqa: SLF001
            return _stored(session.execute(self._query(keys)))

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`, with the async client."""
        self.store._initialize()  # noqa: SLF001
        async with self.store._async_session() as session:  # noqa: SLF001
            return _stored(await session.execute(self._query(keys)))

    def _query(self, keys: Sequence[str]) -> Any:
        from sqlalchemy import select

        rows = self.store._table_class  # noqa: SLF001
        return select(rows.node_id, rows.embedding, rows.text).where(rows.node_id.in_(list(keys)))


_WANTED = ["embeddings", "documents"]


def _as_numbers(keys: Sequence[str], error: Exception) -> list[int]:
    """Ids for a column of numbers: documents have them as text, which the driver asyncpg does not take for a number."""
    if not all(key.isdecimal() for key in keys):
        raise error
    return [int(key) for key in keys]


def _stored(rows: Iterable[Any]) -> dict[str, StoredVector]:
    """The vectors of rows of an id, a vector and a text."""
    return {str(key): StoredVector(_numbers(vector), text) for key, vector, text in rows}


def _numbers(vector: Any) -> Any:
    """The numbers of a vector, which comes as JSON, as an object of pgvector or as an array."""
    if isinstance(vector, str):
        return json.loads(vector)
    return vector.to_list() if hasattr(vector, "to_list") else vector
