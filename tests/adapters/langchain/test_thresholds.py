"""Thresholds on every LangChain surface, and what is embedded for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from oprag import DocumentIndex, VectorCache
from oprag.context import Context
from oprag.errors import CacheWarning, ChunkError, PositionWarning, SourceReadError
from oprag.langchain import (
    DocumentIndexRetriever,
    OrderPreservingChain,
    OrderPreservingCompressor,
    OrderPreservingRetriever,
    stamp_positions,
)
from oprag.stores import StoreAdapter, StoredVector, register_store
from tests.adapters.langchain.conftest import giving, texts
from tests.counting import CountingEmbeddings
from tests.helpers import WordEmbedder
from tests.unknown_store import UnknownStore

QUESTION = "Where did the captain sail?"
TEXTS = [
    "The captain did sail north.",
    "Bread is baked in an oven.",
    "The captain did sail north.",
    "Where did the captain sail from?",
    "Cats purr when they sleep.",
    "The captain did sail north again.",
]


@pytest.fixture
def embeddings() -> CountingEmbeddings:
    return CountingEmbeddings()


@pytest.fixture
def store(embeddings: CountingEmbeddings) -> InMemoryVectorStore:
    store = InMemoryVectorStore(embeddings)
    store.add_documents(stamp_positions([Document(text) for text in TEXTS], source="log.txt"))
    embeddings.forget()
    return store


Ask = Callable[..., Context]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    def run(retriever: OrderPreservingRetriever, question: str = QUESTION, **options: Any) -> Context:
        if request.param == "sync":
            return retriever.get_context(question, **options)
        return asyncio.run(retriever.aget_context(question, **options))

    return run


def kept(context: Context) -> list[int]:
    return [chunk.metadata["chunk_index"] for chunk in context.kept]


def reasons(context: Context) -> dict[int, str]:
    return {drop.chunk.metadata["chunk_index"]: drop.reason for drop in context.dropped}


BOTH: dict[str, Any] = {"similarity_threshold": 0.4, "redundancy_threshold": 0.99}


def cosine(embeddings: CountingEmbeddings, first: str, second: str) -> float:
    one, other = np.array(embeddings._vector(first)), np.array(embeddings._vector(second))
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_store_with_an_adapter_embeds_the_question_alone_and_once(store, embeddings, ask):
    retriever = OrderPreservingRetriever(vectorstore=store, **BOTH)
    context = ask(retriever)
    assert embeddings.embedded == (1, 0)
    assert kept(context) == [0, 3, 5] or kept(context) == [2, 3, 5]
    assert reasons(context)[1] == reasons(context)[4] == "similarity_threshold"
    assert "redundancy_threshold" in reasons(context).values()
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(cosine(embeddings, QUESTION, chunk.text), abs=1e-6)
        # The store's own score is another matter, though here it is a cosine as well.
        assert chunk.score == pytest.approx(chunk.similarity, abs=1e-6)


def test_an_unknown_store_works_through_the_cache(store, embeddings, ask):
    known = ask(OrderPreservingRetriever(vectorstore=store, **BOTH))
    embeddings.forget()
    retriever = OrderPreservingRetriever(vectorstore=UnknownStore(store), **BOTH)
    context = ask(retriever)
    assert kept(context) == kept(known)
    # The store embeds the question by itself; equal texts are embedded once.
    assert embeddings.questions == [QUESTION] * 2
    assert sorted(embeddings.documents) == sorted(set(TEXTS))
    embeddings.forget()
    assert kept(ask(retriever)) == kept(known)
    assert embeddings.embedded == (1, 0)


def test_the_filter_of_a_question_keeps_tenants_apart(embeddings, ask):
    store = InMemoryVectorStore(embeddings)
    for tenant in ("a", "b"):
        documents = [Document(f"{text} ({tenant})", metadata={"tenant": tenant}) for text in TEXTS]
        store.add_documents(stamp_positions(documents, source=tenant))
    retriever = OrderPreservingRetriever(vectorstore=store, similarity_threshold=-1)
    embeddings.forget()
    for tenant in ("a", "b"):
        context = ask(retriever, filter=lambda document, tenant=tenant: document.metadata["tenant"] == tenant)
        assert {chunk.metadata["tenant"] for chunk in context.kept} == {tenant}
        assert len(context.kept) == 6
    assert embeddings.embedded == (1, 0)


def test_the_cache_of_our_retriever_is_set_there(store):
    llm = FakeListChatModel(responses=["North."])
    ours = OrderPreservingRetriever(vectorstore=UnknownStore(store))
    with pytest.raises(ValidationError, match="which has its own options; set vector_cache there"):
        OrderPreservingChain(llm=llm, retriever=ours, vector_cache=VectorCache())


def test_our_own_index_gives_its_vectors(ask):
    embedder = WordEmbedder()
    metadata = [{"source": "log.txt", "chunk_index": number} for number in range(len(TEXTS))]
    index = DocumentIndex(TEXTS, metadata, embedder.embed_documents(TEXTS), embedder)
    embedder.embedded.clear()
    retriever = OrderPreservingRetriever(retriever=DocumentIndexRetriever(index=index), **BOTH)
    context = ask(retriever)
    assert len(context.kept) == 3
    assert embedder.embedded == []
    around = ask(OrderPreservingRetriever(retriever=DocumentIndexRetriever(index=index, k=1), neighbors=1))
    assert kept(around) == [2, 3, 4]
    found = giving(DocumentIndexRetriever(index=index, k=1).invoke(QUESTION))
    assert kept(ask(OrderPreservingRetriever(retriever=found, read_neighbors=index, neighbors=1))) == [2, 3, 4]


def test_a_compressor_embeds_each_text_once(embeddings):
    documents = stamp_positions([Document(text) for text in TEXTS], source="log.txt")
    compressor = OrderPreservingCompressor(embeddings=embeddings, **BOTH)
    found = compressor.compress_documents(documents, QUESTION)
    assert texts(found) == [TEXTS[0], TEXTS[3], TEXTS[5]]
    assert found[0] is documents[0]
    assert embeddings.embedded == (1, 5)
    embeddings.forget()
    assert compressor.compress_documents(documents, QUESTION) == found
    assert asyncio.run(compressor.acompress_documents(documents, QUESTION)) == found
    assert embeddings.embedded == (0, 0)
    assert compressor.compress_documents([], QUESTION) == []


def test_an_adapter_for_a_store_of_one_s_own(store, embeddings, ask):
    class MyStore(UnknownStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return self.inner.similarity_search(query, k, **kwargs)

    class MyAdapter(StoreAdapter):
        def vectors(self, keys: Any) -> dict[str, StoredVector]:
            assert self.search == {"shelf": "top"}
            return {key: StoredVector(self.store.inner.store[key]["vector"]) for key in keys}

    class Taking(MyStore):
        def similarity_search(self, query: str, k: int = 4, shelf: str = "", **kwargs: Any) -> list[Document]:
            assert shelf == "top"
            return super().similarity_search(query, k)

    register_store(MyStore, MyAdapter)
    retriever = OrderPreservingRetriever(vectorstore=Taking(store), search_kwargs={"shelf": "top"}, **BOTH)
    assert len(ask(retriever).kept) == 3
    assert embeddings.embedded == (2, 0)


@pytest.mark.parametrize("options", [{"similarity_threshold": 0.5}, {"redundancy_threshold": 0.5}], ids=str)
def test_without_anything_that_embeds_thresholds_are_refused_at_construction(options):
    with pytest.raises(
        ValidationError, match="thresholds require vectors, but there is no embedding model; pass embeddings="
    ):
        OrderPreservingRetriever(retriever=giving([]), **options)
    with pytest.raises(
        ValidationError, match="thresholds require vectors, but there is no embedding model; pass embeddings="
    ):
        OrderPreservingCompressor(**options)


@pytest.mark.parametrize("given", ["a model", object(), 3])
def test_what_cannot_embed_is_refused(given):
    for make in (
        lambda **options: OrderPreservingRetriever(retriever=giving([]), **options),
        OrderPreservingCompressor,
    ):
        with pytest.raises(ValidationError, match="embeddings must be LangChain embeddings"):
            make(embeddings=given)
        with pytest.raises(ValidationError, match=r"vector_cache\n.* instance of VectorCache"):
            make(vector_cache=given)


def test_a_cache_that_cannot_be_written_is_told_once_and_costs_no_answer(store, tmp_path):
    cache = VectorCache(tmp_path / "missing" / "vectors.db", namespace="words")
    retriever = OrderPreservingRetriever(vectorstore=UnknownStore(store), vector_cache=cache, **BOTH)
    with pytest.warns(CacheWarning, match=r"cannot write the vector cache .*; its folder does not exist") as caught:
        found = [retriever.invoke(QUESTION), retriever.invoke(QUESTION)]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found == [OrderPreservingRetriever(vectorstore=UnknownStore(store), **BOTH).invoke(QUESTION)] * 2


def test_neighbours_without_a_reader_are_refused_at_construction(store):
    unknown = UnknownStore(store)
    for make in (lambda **options: OrderPreservingRetriever(vectorstore=unknown, **options), OrderPreservingCompressor):
        with pytest.raises(ValidationError, match="requires read_neighbors; pass read_neighbors="):
            make(neighbors=1)
        with pytest.raises(ValidationError, match=r"read_neighbors.callable\n.* callable"):
            make(neighbors=1, read_neighbors=3)


# Whose chunks neighbours are.


def index_of(texts_of_source: list[str]) -> DocumentIndex:
    metadata = [{"source": "contract.txt", "chunk_index": number} for number in range(len(texts_of_source))]
    return DocumentIndex(texts_of_source, metadata, WordEmbedder().embed_documents(texts_of_source), WordEmbedder())


def test_a_tenant_never_sees_the_neighbours_of_another():
    alice = DocumentIndexRetriever(index=index_of(["Alice secret.", "The usual clause.", "Alice signs."]), k=1)
    bob = DocumentIndexRetriever(index=index_of(["Bob secret.", "The usual clause.", "Bob signs."]), k=1)
    inner = alice.configurable_alternatives(ConfigurableField("tenant"), default_key="alice", bob=bob)
    with pytest.raises(ValidationError, match="requires read_neighbors; pass read_neighbors="):
        OrderPreservingRetriever(retriever=inner, neighbors=1)
    with pytest.raises(ValidationError, match="thresholds require vectors"):
        OrderPreservingRetriever(retriever=inner, redundancy_threshold=0.99)


@pytest.mark.parametrize("given", [None, 5, "text"])
def test_a_reader_that_gives_something_else_is_named(store, given):
    retriever = OrderPreservingRetriever(vectorstore=store, neighbors=1, read_neighbors=lambda document, number: given)
    with pytest.raises(ChunkError, match="expected a list of LangChain documents, got "):
        retriever.invoke(QUESTION)


def test_a_failing_reader_names_the_chunk(store):
    def failing(document: Document, number: int) -> list[Document]:
        raise ConnectionError("refused")

    message = r"neighbors of a chunk \(rank 0, source 'log\.txt', .*\) cannot be read: ConnectionError: refused"
    with pytest.raises(SourceReadError, match=message):
        OrderPreservingRetriever(vectorstore=store, neighbors=1, read_neighbors=failing).invoke(QUESTION)


@pytest.mark.parametrize("with_ids", [True, False])
def test_a_chunk_whose_text_was_changed_keeps_its_place(with_ids):
    whole = [
        Document(f"Text {n}. And more.", id=f"id {n}" if with_ids else None, metadata={"source": "s", "chunk_index": n})
        for n in range(9)
    ]
    shortened = [whole[n].model_copy(update={"page_content": f"Text {n}."}) for n in (7, 2)]

    def read(document: Document, number: int) -> list[Document]:
        place = document.metadata["chunk_index"]
        return whole[max(0, place - number) : place + number + 1]

    retriever = OrderPreservingRetriever(retriever=giving(shortened), neighbors=1, read_neighbors=read)
    if with_ids:
        found = [document.metadata["chunk_index"] for document in retriever.invoke(QUESTION)]
        assert found == [1, 2, 3, 6, 7, 8]
        return
    with pytest.warns(PositionWarning, match="the neighbors of retrieved chunks contradict their positions"):
        assert retriever.invoke(QUESTION) == shortened[::-1]
