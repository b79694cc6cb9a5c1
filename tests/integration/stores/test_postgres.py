"""What the stores over PostgreSQL do in ways of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from oprag.context import Context
from oprag.errors import OptionError
from oprag.langchain import OrderPreservingRetriever
from oprag.llama_index import OrderPreservingRetriever as NodeRetriever
from tests.integration.stores.checks import (
    CHUNKS,
    WAYS,
    adapter_of_store,
    ask,
    check_similarities,
    documents_of,
    numbers,
)
from tests.integration.stores.corpus import Corpus, identify
from tests.integration.stores.known import KnownEmbeddings, NodeEmbeddings, node_of

pytestmark = pytest.mark.integration


@pytest.fixture(params=["psycopg", "asyncpg"])
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(driver: str, postgres: Callable[[str], str]) -> Iterator[Any]:
    from langchain_postgres import PGEngine

    engine = PGEngine.from_connection_string(postgres(driver))
    yield engine
    asyncio.run(engine.close())


@WAYS
@pytest.mark.parametrize("kind", ["UUID", "TEXT"])
def test_ids_in_columns_of_any_name(kind: str, way: str, engine: Any, corpus: Corpus):
    from langchain_postgres import Column, PGVectorStore

    question, *_ = corpus.questions
    table = f"ids_{kind}_{way}".lower()
    names = {"content_column": "body", "embedding_column": "numbers", "metadata_json_column": "about"}
    engine.init_vectorstore_table(
        table, corpus.vectors.shape[1], id_column=Column("key", kind, nullable=False), overwrite_existing=True, **names
    )
    embeddings = KnownEmbeddings(corpus)
    store = PGVectorStore.create_sync(engine, embeddings, table, id_column="key", **names)
    forms = {
        "UUID": lambda number: identify(table, "red", number),
        "TEXT": lambda number: f'it\'s "{number}"',
    }
    store.add_documents(documents_of(corpus), ids=[forms[kind](number) for number in range(CHUNKS)])
    embeddings.forget()
    retriever = OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1)
    check_similarities(ask(way, retriever, question), corpus, question)
    assert embeddings.embedded == (1, 0)


@WAYS
@pytest.mark.parametrize("given", ["to the store", "to the search"])
def test_a_hybrid_search_is_one_by_words(given: str, way: str, engine: Any, corpus: Corpus):
    from langchain_postgres import PGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion

    question, *_ = corpus.questions
    hybrid = HybridSearchConfig(fusion_function=reciprocal_rank_fusion, primary_top_k=20, secondary_top_k=20)
    table = f"hybrid_{way}_{given}".replace(" ", "_")
    engine.init_vectorstore_table(table, corpus.vectors.shape[1], hybrid_search_config=hybrid, overwrite_existing=True)
    embeddings = KnownEmbeddings(corpus)
    store = PGVectorStore.create_sync(engine, embeddings, table, hybrid_search_config=hybrid)
    store.add_documents(documents_of(corpus))
    search = {}
    if given == "to the search":
        store, search = PGVectorStore.create_sync(engine, embeddings, table), {"hybrid_search_config": hybrid}
    found = store.similarity_search(question, k=20, **search)
    embeddings.forget()
    retriever = OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1, search_kwargs=search)
    context = ask(way, retriever, question)
    assert numbers(context) == sorted(document.metadata["chunk_index"] for document in found)
    check_similarities(context, corpus, question)
    # The store embeds the question by itself, and its vectors are read.
    assert embeddings.questions == [question] * 2
    assert embeddings.documents == []


def test_an_engine_of_one_s_own_is_async_alone(postgres: Callable[[str], str], corpus: Corpus):
    from langchain_postgres import PGEngine, PGVectorStore
    from sqlalchemy.ext.asyncio import create_async_engine

    question, *_ = corpus.questions
    embeddings = KnownEmbeddings(corpus)

    async def fill_and_ask() -> Context:
        engine = PGEngine.from_engine(create_async_engine(postgres("psycopg")))
        await engine.ainit_vectorstore_table("own_engine", corpus.vectors.shape[1])
        store = await PGVectorStore.create(engine, embeddings, "own_engine")
        await store.aadd_documents(documents_of(corpus))
        embeddings.forget()
        context = await OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1).aget_context(
            question
        )
        await engine.close()
        return context

    check_similarities(asyncio.run(fill_and_ask()), corpus, question)
    assert embeddings.embedded == (1, 0)


@WAYS
@pytest.mark.parametrize("mode", ["hybrid", "sparse"])
def test_nodes_of_a_search_by_words_as_well(mode: str, way: str, postgres: Callable[[str], str], corpus: Corpus):
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.vector_stores.postgres import PGVectorStore
    from sqlalchemy.pool import NullPool

    question, *_ = corpus.questions
    table = f"li_{mode}_{way}"
    store = PGVectorStore.from_params(
        connection_string=postgres("psycopg2"),
        async_connection_string=postgres("asyncpg"),
        table_name=table,
        embed_dim=corpus.vectors.shape[1],
        hybrid_search=True,
        create_engine_kwargs={"poolclass": NullPool},
    )
    embeddings = KnownEmbeddings(corpus)
    nodes = [
        node_of(text, identify(table, "red", number), corpus.metadata(number, "red"))
        for number, text in enumerate(corpus.texts[:CHUNKS])
    ]
    storage = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=NodeEmbeddings(embeddings))
    inner = index.as_retriever(similarity_top_k=10, sparse_top_k=10, vector_store_query_mode=mode)
    found = {node.node_id for node in inner.retrieve(question)}
    embeddings.forget()
    retriever = NodeRetriever(retriever=inner, similarity_threshold=-1)
    context = ask(way, retriever, question)
    assert {chunk.id for chunk in context.kept} == found
    assert numbers(context) == sorted(numbers(context))
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(corpus.cosine(question, chunk.metadata["chunk_index"]), abs=1e-3)
    assert embeddings.embedded == (1, 0)
    asyncio.run(store.close())


def listed(store: Any, **search: Any) -> dict[str, Mapping[str, Any]]:
    return {chunk.text: chunk.metadata for chunk in adapter_of_store(store, **search).chunks() or ()}


def numbered(store: Any, corpus: Corpus, count: int = CHUNKS) -> dict[str, dict[str, Any]]:
    """A number for the first chunks, by their ids."""
    number_of = {text: number for number, text in enumerate(corpus.texts[:count])}
    chunks = adapter_of_store(store).chunks() or ()
    return {chunk.key: {"place": number_of[chunk.text]} for chunk in chunks if chunk.text in number_of}


@pytest.mark.parametrize("kind", ["UUID", "TEXT", "INTEGER"])
def test_metadata_is_written_by_ids_of_any_kind_into_json_of_any_kind(kind: str, engine: Any, corpus: Corpus):
    from langchain_postgres import Column, PGVectorStore
    from sqlalchemy import text

    table = f"Written {kind}"
    names = {"content_column": "the body", "embedding_column": "numbers", "metadata_json_column": "About"}
    engine.init_vectorstore_table(
        table,
        corpus.vectors.shape[1],
        id_column=Column("the key", kind, nullable=False),
        overwrite_existing=True,
        **names,
    )
    store = PGVectorStore.create_sync(engine, KnownEmbeddings(corpus), table, id_column="the key", **names)
    forms = {
        "UUID": lambda number: identify(table, "red", number),
        "TEXT": lambda number: f'it\'s "{number}"',
        "INTEGER": lambda number: number,
    }
    store.add_documents(documents_of(corpus), ids=[forms[kind](number) for number in range(CHUNKS)])
    at_first = listed(store)
    adapter_of_store(store).write(numbered(store, corpus, 9))

    async def to_jsonb() -> None:
        async with engine._pool.begin() as connection:
            await connection.execute(text(f'ALTER TABLE "{table}" ALTER "About" TYPE jsonb'))

    engine._run_as_sync(to_jsonb())
    adapter_of_store(store).write({key: {"again": "x"} for key in numbered(store, corpus, 5)})
    for number, body in enumerate(corpus.texts[:CHUNKS]):
        more = {**({"place": number} if number < 9 else {}), **({"again": "x"} if number < 5 else {})}
        assert listed(store)[body] == {**at_first[body], **more}
    chosen = list(adapter_of_store(store).chunks("source", {"python-reference"}) or ())
    assert len(chosen) == CHUNKS


@pytest.mark.parametrize("inside", [False, True], ids=["no loop", "in a loop"])
def test_an_async_store_is_written_from_code_that_is_not_async(
    inside: bool, driver: str, postgres: Callable[[str], str], corpus: Corpus
):
    from langchain_postgres import PGEngine, PGVector, PGVectorStore
    from sqlalchemy.ext.asyncio import create_async_engine

    embeddings, name = KnownEmbeddings(corpus), f"async_{inside}_{driver}"

    def own_engine() -> Any:
        return create_async_engine(postgres(driver))

    def vector_store(engine: Any) -> Any:
        return PGVector(embeddings, connection=engine, collection_name=name, async_mode=True, create_extension=False)

    async def fill() -> None:
        engine = own_engine()
        await PGEngine.from_engine(engine).ainit_vectorstore_table(name, corpus.vectors.shape[1])
        newer = await PGVectorStore.create(PGEngine.from_engine(engine), embeddings, name)
        await newer.aadd_documents(documents_of(corpus))
        ids = [identify(name, "red", number) for number in range(CHUNKS)]
        await vector_store(engine).aadd_documents(documents_of(corpus), ids=ids)
        await engine.dispose()

    def write(store: Any) -> None:
        at_first = listed(store)
        assert len(at_first) == CHUNKS
        filtered = adapter_of_store(store, filter={"chunk_index": {"$lt": 10}}).chunks("source", {"python-reference"})
        assert len(list(filtered or ())) == 10
        adapter_of_store(store).write(numbered(store, corpus))
        assert listed(store) == {
            text: {**at_first[text], "place": number} for number, text in enumerate(corpus.texts[:CHUNKS])
        }

    async def use() -> None:
        engine = own_engine()
        newer = await PGVectorStore.create(PGEngine.from_engine(engine), embeddings, name)
        # The first call of this PGVector, which does not know its tables yet.
        older = vector_store(engine)
        for store in (newer, older):
            if inside:
                write(store)
            else:
                await asyncio.to_thread(write, store)
            found = await store.asimilarity_search(next(iter(corpus.questions)), k=5)
            assert all("place" in document.metadata for document in found)
        await engine.dispose()

    asyncio.run(fill())
    asyncio.run(use())


def test_collections_are_kept_apart_and_all_is_undone(
    postgres: Callable[[str], str], corpus: Corpus, monkeypatch: pytest.MonkeyPatch
):
    from langchain_postgres import PGVector
    from sqlalchemy import create_engine

    engine = create_engine(postgres("psycopg"))
    stores = {}
    for name in ("mine", "theirs"):
        store = PGVector(KnownEmbeddings(corpus), connection=engine, collection_name=name, create_extension=False)
        store.add_documents(documents_of(corpus), ids=[identify(name, "red", number) for number in range(CHUNKS)])
        stores[name] = store
    mine, theirs = stores["mine"], stores["theirs"]
    at_first = listed(mine)
    assert {chunk.key for chunk in adapter_of_store(mine).chunks() or ()} == set(numbered(mine, corpus))
    monkeypatch.setattr("oprag.stores.postgres._BATCH", 7)
    other = next(iter(numbered(theirs, corpus)))
    with pytest.raises(OptionError, match="PGVector matched 4 chunks instead of 5, so nothing was written"):
        adapter_of_store(mine).write({**numbered(mine, corpus), other: {"place": 1}})
    assert listed(mine) == listed(theirs) == at_first
    adapter_of_store(mine).write(numbered(mine, corpus))
    assert {about["place"] for about in listed(mine).values()} == set(range(CHUNKS))
    assert listed(theirs) == at_first
    some = adapter_of_store(mine, filter={"$or": [{"page": 1}, {"page": {"$in": [2]}}]}).chunks()
    assert {chunk.metadata["page"] for chunk in some or ()} == {1, 2}
    engine.dispose()
