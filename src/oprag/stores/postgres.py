"""PostgreSQL with pgvector: LangChain's `PGVector` and `PGVectorStore`, LlamaIndex's `PGVectorStore`."""

import json
from asyncio import to_thread
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.positions.insertion import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector
from oprag.stores.nodes import content_with, docstore_rows, listed_nodes, put_rows

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
    """LlamaIndex's `PGVectorStore`, which numbers its rows."""

    in_insertion_order = True

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

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """The ids in the sequence of the numbers that PostgreSQL gave the rows."""
        from sqlalchemy import select

        rows = self.store._table_class  # noqa: SLF001
        query = select(rows.node_id).where(rows.node_id.in_(list(keys))).order_by(rows.id)
        with self._begun() as session:
            return list(session.scalars(query))

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """The nodes in the sequence of their rows; None where a function of the user changes the queries."""
        by_function = getattr(self.store, "_customize_query_fn", None) is not None
        return None if by_function or not self.search.keys() <= _KEYWORDS else self._listed(field, sources)

    def _listed(self, field: str, sources: Collection[str]) -> Iterator[StoredChunk]:
        from llama_index.vector_stores.postgres.base import DBEmbeddingRow
        from sqlalchemy import select

        rows, filters = self.store._table_class, self.search.get("filters")  # noqa: SLF001
        query = select(rows.node_id, rows.text, rows.metadata_).order_by(rows.id)
        if filters is not None and filters.filters:
            query = query.where(self.store._recursively_apply_filters(filters))  # noqa: SLF001
        if field:
            query = query.where(rows.metadata_[field].astext.in_(list(sources)))
        with self._begun() as session:
            found = [DBEmbeddingRow(*row, custom_fields={}, similarity=0.0) for row in session.execute(query)]
        yield from listed_nodes(self.store._db_rows_to_query_result(found).nodes, field, sources)  # noqa: SLF001

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes, in one transaction."""
        from sqlalchemy import bindparam, select, update

        rows = self.store._table_class  # noqa: SLF001
        query = select(rows.id, rows.node_id, rows.metadata_).where(rows.node_id.in_([*added])).with_for_update()
        change = update(rows.__table__).where(rows.id == bindparam("row")).values(metadata_=bindparam("changed"))
        with self._begun() as session:
            # A node that was added twice has two rows.
            found = session.execute(query).all()
            self.refuse_unknown(added, {key for _, key, _ in found})
            nodes = docstore_rows(self.docstore, added)
            changed = [
                {"row": row, "changed": {**flat, **content_with(flat, added[key], key)}} for row, key, flat in found
            ]
            if changed:
                session.execute(change, changed)
            put_rows(self.docstore, nodes)

    def _begun(self) -> Any:
        """A session with a transaction, which the end of the block commits."""
        self.store._initialize()  # noqa: SLF001
        return self.store._session.begin()  # noqa: SLF001


# Of LlamaIndex's store: the filters are all that chooses nodes, and node ids do not.
_KEYWORDS = {
    *("filters", "node_ids", "ivfflat_probes", "hnsw_ef_search"),
    *("mmr_threshold", "mmr_prefetch_factor", "mmr_prefetch_k"),
}
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
