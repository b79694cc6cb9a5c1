"""Pinecone's client against a stand-in that speaks its published format; never run against the service."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.errors import EmbeddingError
from oprag.langchain import OrderPreservingRetriever
from tests.integration.pinecone_stub import API_KEY, PineconeStub, Request, serve_pinecone
from tests.integration.stores.checks import WAYS, ask, check
from tests.integration.stores.corpus import OPTIONS, TENANTS, Corpus, identify
from tests.integration.stores.known import KnownEmbeddings

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def stub(corpus: Corpus) -> Iterator[PineconeStub]:
    """An index with a namespace for each tenant."""
    with serve_pinecone() as stub:
        for tenant in TENANTS:
            store_at(stub, KnownEmbeddings(corpus), namespace=tenant).add_documents(
                [
                    Document(text, metadata={"source": "python-reference", "chunk_index": number, "tenant": tenant})
                    for number, text in enumerate(corpus.texts)
                ],
                ids=[identify("pinecone", tenant, number) for number in range(len(corpus.texts))],
            )
        yield stub


@pytest.fixture(autouse=True)
def nothing_fails(stub: PineconeStub) -> None:
    stub.requests.clear()
    stub.fails = lambda request: False


def store_at(stub: PineconeStub, embeddings: KnownEmbeddings, *, key: str = API_KEY, **options: Any) -> Any:
    from langchain_pinecone import PineconeVectorStore

    return PineconeVectorStore(embedding=embeddings, host=stub.host, pinecone_api_key=key, **options)


def asked(stub: PineconeStub, path: str) -> list[Request]:
    return [request for request in stub.requests if request.path == path]


@WAYS
def test_a_namespace_of_the_store_or_of_the_search(way: str, stub: PineconeStub, corpus: Corpus):
    question, *_ = corpus.questions
    for tenant in TENANTS:
        own = store_at(stub, KnownEmbeddings(corpus), namespace=tenant)
        check(ask(way, OrderPreservingRetriever(vectorstore=own, **OPTIONS), question), corpus, question, tenant)
        shared = store_at(stub, KnownEmbeddings(corpus))
        retriever = OrderPreservingRetriever(vectorstore=shared, search_kwargs={"namespace": tenant}, **OPTIONS)
        check(ask(way, retriever, question), corpus, question, tenant)
        assert {request.query["namespace"][0] for request in asked(stub, "/vectors/fetch")} == {tenant}
        stub.requests.clear()


@WAYS
def test_what_is_sent(way: str, stub: PineconeStub, corpus: Corpus):
    question, *_ = corpus.questions
    embeddings = KnownEmbeddings(corpus)
    store = store_at(stub, embeddings, namespace="red")
    retriever = OrderPreservingRetriever(vectorstore=store, **OPTIONS)
    context = ask(way, retriever, question, filter={"chunk_index": {"$gte": 0}})
    assert embeddings.embedded == (1, 0)

    (query,) = asked(stub, "/query")
    assert query.body["topK"] == 128
    assert query.body["namespace"] == "red"
    assert query.body["filter"] == {"chunk_index": {"$gte": 0}}
    assert query.body["vector"] == pytest.approx(corpus.questions[question].tolist())
    assert query.headers["X-Pinecone-API-Version"] == "2025-04"
    # Ids stand in the address, so there are no more than 100 of them in a request.
    fetched = [request.query["ids"] for request in asked(stub, "/vectors/fetch")]
    assert sorted(map(len, fetched)) == [28, 100]
    found = {chunk.id for chunk in (*context.kept, *(drop.chunk for drop in context.dropped))}
    assert {key for part in fetched for key in part} == found

    embeddings.forget()
    ask(way, retriever, question, filter={"chunk_index": {"$gte": 0}})
    assert embeddings.embedded == (0, 0)


# Where a request failed, the async client leaves its connection to the garbage collector, which may find it open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@WAYS
def test_an_index_that_is_out_of_order(way: str, stub: PineconeStub, corpus: Corpus, monkeypatch):
    from pinecone.openapi_support import retry_aiohttp, retry_urllib3

    # The client tries five times and waits for seconds between.
    monkeypatch.setattr(retry_urllib3.JitterRetry, "get_backoff_time", lambda self: 0)
    monkeypatch.setattr(retry_aiohttp.JitterRetry, "get_timeout", lambda self, attempt, response=None: 0)
    question, *_ = corpus.questions
    embeddings = KnownEmbeddings(corpus)
    retriever = OrderPreservingRetriever(vectorstore=store_at(stub, embeddings, namespace="red"), **OPTIONS)

    stub.fails = lambda request: request.path == "/vectors/fetch"
    with pytest.raises(EmbeddingError) as caught:
        ask(way, retriever, question)
    message = str(caught.value)
    assert "the store PineconeVectorStore failed to return the vectors of 128 chunks (the first: rank 0" in message
    assert caught.value.__cause__ is not None
    assert type(caught.value.__cause__).__name__ in message
    # The client's own message has all ids that were asked for in it.
    assert len(message) < 600

    # A search that fails is as it is without us.
    stub.fails = lambda request: request.path == "/query"
    with pytest.raises(Exception, match="500"):
        ask(way, retriever, question)

    # Nothing was embedded in place of what was not read, and the next question works.
    assert embeddings.embedded == (1, 0)
    stub.fails = lambda request: False
    check(ask(way, retriever, question), corpus, question, "red")
    gc.collect()


def test_what_the_index_has_lost_is_embedded(stub: PineconeStub, corpus: Corpus):
    question, *_ = corpus.questions
    embeddings = KnownEmbeddings(corpus)
    retriever = OrderPreservingRetriever(vectorstore=store_at(stub, embeddings, namespace="red"), **OPTIONS)
    answer = stub.answer

    def forgetful(request: Request) -> Any:
        found = answer(request)
        if request.path == "/vectors/fetch":
            found["vectors"].popitem()
        return found

    stub.answer = forgetful  # type: ignore[method-assign]
    try:
        check(retriever.get_context(question), corpus, question, "red")
    finally:
        del stub.answer
    assert embeddings.embedded == (1, 2)
