"""PostgreSQL with pgvector: LangChain's `PGVector` and `PGVectorStore`, LlamaIndex's `PGVectorStore`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import JSON, Engine, String, bindparam, cast, column, literal, select, table, text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from oprag._internal.masking import describe
from oprag.errors import OptionError
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, as_texts, chunks_with, parts, refuse_unknown
from oprag.stores.llama_index_nodes import content_with, docstore_rows, listed_nodes, put_rows

__all__ = ["LangChainPGVector", "LangChainPGVectorStore", "LlamaIndexPGVectorStore"]


class LangChainPGVector(StoreAdapter):
    """LangChain's `PGVector`, the older of its two stores; each instance is either sync or async."""

    by_vector = "similarity_search_with_score_by_vector"

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id."""
        with self.store.session_maker() as session:
            return _stored(session.execute(self._query(keys)))

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Async version of `vectors`, with the async client if there is one."""
        if not self.store.async_mode:
            return await asyncio.to_thread(self.vectors, keys)
        async with self.store.session_maker() as session:
            return _stored(await session.execute(self._query(keys)))

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks of the collection, with the store's sync or async client."""
        (rows, _), given = self._tables, self.search.get("filter")
        query = self._select(rows.id, rows.document, rows.cmetadata)
        if given:
            query = query.where(self.store._create_filter_clause(given))  # noqa: SLF001
        if field:
            query = query.where(rows.cmetadata[field].astext.in_(as_texts(sources)))
        found = _results(self._engine, query)
        return chunks_with((StoredChunk(key, text or "", about or {}) for key, text, about in found), field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge the metadata in one transaction, with the store's sync or async client."""
        statement = _UPDATE.format(table="langchain_pg_embedding", column="cmetadata", id="id") + _IN_COLLECTION
        _write(self, self._engine, added, statement, collection=self.store.collection_name)

    @property
    def _engine(self) -> Any:
        return self.store._async_engine if self.store.async_mode else self.store._engine  # noqa: SLF001

    @property
    def _tables(self) -> tuple[Any, Any]:
        """The tables of chunks and collections, which an async store defines only at its first use."""
        if not hasattr(self.store, "EmbeddingStore"):
            from langchain_postgres.vectorstores import _get_embedding_collection_store

            tables = _get_embedding_collection_store(self.store._embedding_length)  # noqa: SLF001
            self.store.EmbeddingStore, self.store.CollectionStore = tables
        return self.store.EmbeddingStore, self.store.CollectionStore

    def _query(self, keys: Sequence[str]) -> Any:
        rows, _ = self._tables
        return self._select(rows.id, rows.embedding, rows.document).where(rows.id.in_(list(keys)))

    def _select(self, *columns: Any) -> Any:
        """Return a query for columns of the collection's rows."""
        rows, collections = self._tables
        return (
            select(*columns)
            .select_from(rows)
            .join(collections, rows.collection_id == collections.uuid)
            .where(collections.name == self.store.collection_name)
        )


class LangChainPGVectorStore(StoreAdapter):
    """LangChain's `PGVectorStore`, the newer of its two stores."""

    by_vector = "similarity_search_with_score_by_vector"
    settings = ("hybrid_search_config",)

    @property
    def dense(self) -> bool:
        """Whether the search uses vectors only."""
        config = getattr(self._inner, "hybrid_search_config", None)
        return self.search.get("hybrid_search_config") is None and config is None

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id."""
        return _stored_columns(self.store.get(ids=list(keys), include=_COLUMNS_READ))

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Async version of `vectors`, with the async client."""
        return _stored_columns(await self.store.aget(ids=list(keys), include=_COLUMNS_READ))

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the chunks of the table; None for a filter of a type that the store ignores."""
        store, given = self._inner, self.search.get("filter")
        if not isinstance(given, dict | None):
            return None
        about = column(store.metadata_json_column) if store.metadata_json_column else literal(None, JSON)
        columns = [column(name) for name in store.metadata_columns]
        query = select(column(store.id_column), column(store.content_column), about, *columns)
        query = query.select_from(table(store.table_name, schema=store.schema_name))
        if given:
            clause, values = store._create_filter_clause(given)  # noqa: SLF001
            query = query.where(text(clause).bindparams(**values))
        if field:
            named = cast(column(field), String) if field in store.metadata_columns else about.op("->>")(field)
            query = query.where(named.in_(as_texts(sources)))
        rows = (
            StoredChunk(str(key), body, {**(about or {}), **dict(zip(store.metadata_columns, values, strict=True))})
            for key, body, about, *values in _results(store.engine, query)
        )
        return chunks_with(rows, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge the metadata into the JSON column, in one transaction."""
        store = self._inner
        columns = {name for more in added.values() for name in more}.intersection(store.metadata_columns)
        # A column takes precedence over a key of the JSON column.
        if columns or not store.metadata_json_column:
            what = f"has the columns {describe(sorted(columns))}" if columns else "has no JSON column"
            raise OptionError(
                f"oprag writes metadata to a JSON column only, but the table of {self.name} {what}; pass read_source= "
                "instead, or stamp positions before you add chunks",
                self.store,
            )
        quoted = store.engine.dialect.identifier_preparer.quote
        place = f"{quoted(store.schema_name)}.{quoted(store.table_name)}"
        column, key = quoted(store.metadata_json_column), quoted(store.id_column)
        _write(self, store.engine, added, _UPDATE.format(table=place, column=column, id=key))

    @property
    def _inner(self) -> Any:
        """The async store inside, which has the names of the table and its columns."""
        return getattr(self.store, "_PGVectorStore__vs", self.store)


class LlamaIndexPGVectorStore(StoreAdapter):
    """LlamaIndex's `PGVectorStore`, which numbers its rows."""

    in_insertion_order = True
    filters = ("filters", "doc_ids")
    settings = ("hnsw_ef_search", "ivfflat_probes", "node_ids")

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of nodes by id."""
        rows = self.store._table_class  # noqa: SLF001
        query = select(rows.node_id, rows.embedding, rows.text).where(rows.node_id.in_(list(keys)))
        with self._transaction() as session:
            return _stored(session.execute(query))

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by row number, which PostgreSQL assigns in insertion order."""
        rows = self.store._table_class  # noqa: SLF001
        query = select(rows.node_id).where(rows.node_id.in_(list(keys))).order_by(rows.id)
        with self._transaction() as session:
            return list(session.scalars(query))

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the nodes by row number; None if the user's function customizes queries."""
        if getattr(self.store, "_customize_query_fn", None) is not None:
            return None
        rows, filters = self.store._table_class, self.search.get("filters")  # noqa: SLF001
        query = select(rows.node_id, rows.text, rows.metadata_).order_by(rows.id)
        if filters is not None and filters.filters:
            query = query.where(self.store._recursively_apply_filters(filters))  # noqa: SLF001
        if field:
            query = query.where(rows.metadata_[field].astext.in_(as_texts(sources)))
        return listed_nodes(self._nodes(query), field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes, in one transaction."""
        rows = self.store._table_class  # noqa: SLF001
        query = select(rows.id, rows.node_id, rows.metadata_).where(rows.node_id.in_([*added])).with_for_update()
        change = update(rows.__table__).where(rows.id == bindparam("row")).values(metadata_=bindparam("changed"))
        with self._transaction() as session:
            # A node that was added twice has two rows.
            found = session.execute(query).all()
            refuse_unknown(self, added, {key for _, key, _ in found})
            nodes = docstore_rows(self.docstore, added)
            changed = [
                {"row": row, "changed": {**flat, **content_with(flat, added[key], key)}} for row, key, flat in found
            ]
            if changed:
                session.execute(change, changed)
            put_rows(self.docstore, nodes)

    def _nodes(self, query: Any) -> Iterator[Any]:
        from llama_index.vector_stores.postgres.base import DBEmbeddingRow

        with self._transaction() as session:
            found = [DBEmbeddingRow(*row, custom_fields={}, similarity=0.0) for row in session.execute(query)]
        yield from self.store._db_rows_to_query_result(found).nodes  # noqa: SLF001

    def _transaction(self) -> Any:
        """Return a session in a transaction that is committed at the end of the block."""
        self.store._initialize()  # noqa: SLF001
        return self.store._session.begin()  # noqa: SLF001


_COLUMNS_READ = ["embeddings", "documents"]

# Chunks per UPDATE statement; the size of a JSONB value is limited.
_BATCH = 10_000
_UPDATE = """
UPDATE {table} AS old SET {column} = CAST(coalesce(old.{column}, '{{}}') AS jsonb) || given.value
FROM jsonb_each(CAST(:added AS jsonb)) AS given
WHERE CAST(old.{id} AS text) = given.key
"""
_IN_COLLECTION = "AND old.collection_id IN (SELECT uuid FROM langchain_pg_collection WHERE name = :collection)"


def _write(store: StoreAdapter, engine: Any, added: Mapping[str, Any], statement: str, **parameters: Any) -> None:
    """Change the metadata of all chunks in batches, in one transaction."""

    def in_batches(connection: Any) -> None:
        for keys in parts(list(added), _BATCH):
            batch = json.dumps({key: dict(added[key]) for key in keys})
            changed = connection.execute(text(statement), {"added": batch, **parameters}).rowcount
            if changed != len(keys):
                raise OptionError(
                    f"{store.name} matched {changed} chunks instead of {len(keys)}, so nothing was written; if the "
                    "store changed in the meantime, try again",
                    list(keys),
                )

    _in_transaction(engine, in_batches)


def _results(engine: Any, query: Any) -> Iterator[Any]:
    """Yield the rows of a query, which runs only when the first one is needed."""
    yield from _in_transaction(engine, lambda connection: connection.execute(query).all())


def _in_transaction(engine: Any, work: Callable[[Any], Any]) -> Any:
    """Run a function with a connection of a sync or async engine, from synchronous code."""
    if isinstance(engine, Engine):
        with engine.begin() as connection:
            return work(connection)
    # Use a new pool: existing connections belong to the store's event loop.
    inner = engine.sync_engine
    options = inner.get_execution_options()
    own = AsyncEngine(Engine(inner.pool.recreate(), inner.dialect, inner.url)).execution_options(**options)

    async def run() -> Any:
        try:
            async with own.begin() as connection:
                return await connection.run_sync(work)
        finally:
            await own.dispose()

    # Use a new thread: this one may already run an event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


def _stored_columns(found: Mapping[str, Any]) -> dict[str, StoredVector]:
    return _stored(zip(found["ids"], found["embeddings"], found["documents"], strict=True))


def _stored(rows: Iterable[Any]) -> dict[str, StoredVector]:
    """Convert (id, vector, text) rows to stored vectors by id."""
    return {str(key): StoredVector(_numbers(vector), text) for key, vector, text in rows}


def _numbers(vector: Any) -> Any:
    """Convert a vector that is JSON, a pgvector object or an array to numbers."""
    if isinstance(vector, str):
        return json.loads(vector)
    return vector.to_list() if hasattr(vector, "to_list") else vector
