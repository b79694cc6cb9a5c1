"""PostgreSQL with pgvector: LangChain's `PGVector` and `PGVectorStore`, LlamaIndex's `PGVectorStore`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, TypeVar

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.sources import numbers_named
from oprag.stores.adapter import StoreAdapter, StoredVector, chunks_with, parts
from oprag.stores.llama_index_nodes import content_with, docstore_rows, listed_nodes, put_rows

__all__ = ["LangChainPGVector", "LangChainPGVectorStore", "LlamaIndexPGVectorStore"]

T = TypeVar("T")


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
            return await asyncio.to_thread(self.vectors, keys)
        async with self.store.session_maker() as session:
            return _stored(await session.execute(self._query(keys)))

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """The chunks of the collection, with the client that the store has."""
        if field and not sources:
            return ()
        rows, given = self._made.EmbeddingStore, self.search.get("filter")
        query = self._select(rows.id, rows.document, rows.cmetadata)
        if given:
            query = query.where(self._made._create_filter_clause(given))  # noqa: SLF001
        if field:
            query = query.where(rows.cmetadata[field].astext == _any_of(_as_texts(sources)))
        found = _in_transaction(self._engine, lambda connection: connection.execute(query).all())
        return chunks_with((StoredChunk(key, text or "", about or {}) for key, text, about in found), field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge the metadata in one transaction, with the client that the store has."""
        from sqlalchemy import String, cast, column, func, literal, update
        from sqlalchemy.dialects.postgresql import JSONB

        rows, ours = self._made.EmbeddingStore, self._select(self._made.CollectionStore.uuid)

        def change(connection: Any, batch: Mapping[str, Any]) -> Any:
            given = func.jsonb_each(literal(batch, JSONB)).table_valued(column("key", String), column("value", JSONB))
            merged = func.coalesce(rows.cmetadata, cast({}, JSONB)).op("||")(given.c.value)
            condition = (rows.id == given.c.key) & rows.collection_id.in_(ours)
            return connection.execute(update(rows).where(condition).values(cmetadata=merged))

        _write(self, self._engine, added, change)

    @property
    def _engine(self) -> Any:
        return self.store._async_engine if self.store.async_mode else self.store._engine  # noqa: SLF001

    @property
    def _made(self) -> Any:
        """The store with its tables, which an async one does not know before it is used."""
        if hasattr(self.store, "EmbeddingStore"):
            return self.store
        from langchain_postgres.vectorstores import _get_embedding_collection_store

        store = copy(self.store)
        length = store._embedding_length  # noqa: SLF001
        store.EmbeddingStore, store.CollectionStore = _get_embedding_collection_store(length)
        return store

    def _query(self, keys: Sequence[str]) -> Any:
        rows = self._made.EmbeddingStore
        return self._select(rows.id, rows.embedding, rows.document).where(rows.id.in_(list(keys)))

    def _select(self, *columns: Any) -> Any:
        """Columns of the rows of the collection."""
        from sqlalchemy import select

        rows, collections = self._made.EmbeddingStore, self._made.CollectionStore
        return (
            select(*columns)
            .select_from(rows)
            .join(collections, rows.collection_id == collections.uuid)
            .where(collections.name == self.store.collection_name)
        )


class LangChainPGVectorStore(StoreAdapter):
    """LangChain's `PGVectorStore`, the newer of its two stores."""

    by_vector = "similarity_search_with_score_by_vector"

    @property
    def dense(self) -> bool:
        """Whether this search compares vectors only."""
        config = getattr(self._inner, "hybrid_search_config", None)
        return self.search.get("hybrid_search_config") is None and config is None

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

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """The chunks of the table; None for a filter that the store ignores."""
        from sqlalchemy import JSON, String, cast, column, literal, select, table, text

        store, given = self._inner, self.search.get("filter")
        if not isinstance(given, dict | None):
            return None
        if field and not sources:
            return ()
        about = column(store.metadata_json_column) if store.metadata_json_column else literal(None, JSON)
        columns = [column(name) for name in store.metadata_columns]
        query = select(column(store.id_column), column(store.content_column), about, *columns)
        query = query.select_from(table(store.table_name, schema=store.schema_name))
        if given:
            clause, values = store._create_filter_clause(given)  # noqa: SLF001
            query = query.where(text(clause).bindparams(**values))
        if field:
            named = cast(column(field), String) if field in store.metadata_columns else about.op("->>")(field)
            query = query.where(named == _any_of(_as_texts(sources)))
        found = _in_transaction(store.engine, lambda connection: connection.execute(query).all())
        rows = (
            StoredChunk(str(key), body, {**(about or {}), **dict(zip(store.metadata_columns, values, strict=True))})
            for key, body, about, *values in found
        )
        return chunks_with(rows, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Change the columns that have these names, and the JSON of the other metadata, in one transaction."""
        from sqlalchemy import text

        store = self._inner
        quoted = store.engine.dialect.identifier_preparer.quote
        names = {name for more in added.values() for name in more}
        columns = names.intersection(store.metadata_columns)
        changes = [_COLUMN.format(column=quoted(name)) for name in sorted(columns)]
        if store.metadata_json_column:
            changes.append(_JSON.format(column=quoted(store.metadata_json_column)))
        elif columns < names:
            missing = describe(sorted(names - columns))
            raise OptionError(
                f"the table of {self.name} needs a JSON column, or columns with these names: {missing}", names
            )
        place = f"{quoted(store.schema_name)}.{quoted(store.table_name)}"
        update = text(_UPDATE.format(table=place, changes=", ".join(changes), id=quoted(store.id_column)))

        def change(connection: Any, batch: Mapping[str, Any]) -> Any:
            return connection.execute(update, {"added": json.dumps(batch), "columns": sorted(columns)})

        _write(self, store.engine, added, change)

    @property
    def _inner(self) -> Any:
        """The async store inside, which knows the table."""
        return getattr(self.store, "_PGVectorStore__vs", self.store)


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
            query = query.where(rows.metadata_[field].astext.in_(_as_texts(sources)))
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

# Chunks that a statement changes; a value of JSONB has a limit.
_BATCH = 10_000
_UPDATE = """
UPDATE {table} AS old SET {changes}
FROM jsonb_each(CAST(:added AS jsonb)) AS given
WHERE CAST(old.{id} AS text) = given.key
"""
_COLUMN = "{column} = (jsonb_populate_record(old, given.value)).{column}"
# Not as JSONB, which writes 1e2 as 100 and sorts the keys.
_JSON = """{column} = coalesce(
    (
        SELECT json_object_agg(key, value)
        FROM (
            SELECT key, value FROM json_each(CAST(old.{column} AS json)) WHERE NOT given.value ? key
            UNION ALL
            SELECT key, value FROM json_each(CAST(given.value - CAST(:columns AS text[]) AS json))
        ) AS pairs
    ),
    CAST(old.{column} AS json)
)"""


def _write(
    store: StoreAdapter, engine: Any, added: Mapping[str, Any], change: Callable[[Any, Mapping[str, Any]], Any]
) -> None:
    """Change the metadata of all chunks, or of none."""

    def in_batches(connection: Any) -> None:
        for keys in parts(list(added), _BATCH):
            batch = {key: dict(added[key]) for key in keys}
            changed = change(connection, batch).rowcount
            if changed != len(batch):
                raise OptionError(
                    f"{store.name} has only {changed} of these {len(batch)} chunks, so nothing was written; "
                    "if it changed meanwhile, try again",
                    list(batch),
                )

    _in_transaction(engine, in_batches)


def _in_transaction(engine: Any, work: Callable[[Any], T]) -> T:
    """Do something with a connection of a sync or async engine, from code that is not async."""
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

    if isinstance(engine, Engine):
        with engine.begin() as connection:
            return work(connection)
    # The connections that it has belong to the event loop of the store.
    inner = engine.sync_engine
    options = inner.get_execution_options()
    own = AsyncEngine(Engine(inner.pool.recreate(), inner.dialect, inner.url)).execution_options(**options)

    async def run() -> T:
        try:
            async with own.begin() as connection:
                result: T = await connection.run_sync(work)
                return result
        finally:
            await own.dispose()

    # In a thread, since this one may have an event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


def _as_texts(sources: Collection[str]) -> list[str]:
    """The values of metadata that name these sources, as the database writes them."""
    return [*sources, *(repr(float(number)) for number in numbers_named(sources))]


def _any_of(values: Collection[str]) -> Any:
    from sqlalchemy import ARRAY, String, any_, literal

    return any_(literal(list(values), ARRAY(String)))


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
