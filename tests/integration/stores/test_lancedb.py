"""What LanceDB does in ways of its own: its documents have no ids, and it can search by words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.context import Context
from oprag.langchain import OrderPreservingRetriever
from oprag.langchain.search import takes_a_vector
from tests.integration.stores.checks import numbers
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings

pytestmark = pytest.mark.integration

CHUNKS = 60
WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def store_at(folder: Path, corpus: Corpus, **options: Any) -> Any:
    import lancedb
    from langchain_community.vectorstores import LanceDB

    connection = lancedb.connect(str(folder))
    return LanceDB(connection=connection, embedding=KnownEmbeddings(corpus), mode="append", **options)


def add(store: Any, corpus: Corpus, tenant: str = "red") -> None:
    documents = [
        Document(text, metadata=corpus.metadata(number, tenant)) for number, text in enumerate(corpus.texts[:CHUNKS])
    ]
    store.add_documents(documents)
    store.embeddings.forget()


def ask(way: str, retriever: OrderPreservingRetriever, question: str) -> Context:
    return retriever.get_context(question) if way == "sync" else asyncio.run(retriever.aget_context(question))


def check(context: Context, corpus: Corpus, question: str) -> None:
    assert len(context.kept) == 20
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(corpus.cosine(question, chunk.metadata["chunk_index"]), abs=1e-3)


@WAYS
def test_a_table_of_the_search_and_columns_of_any_name(way: str, corpus: Corpus, tmp_path: Path):
    question, *_ = corpus.questions
    columns = {"vector_key": "body_vector", "id_key": "key", "text_key": "body"}
    other = store_at(tmp_path, corpus, table_name="other", **columns)
    add(other, corpus, "blue")
    store = store_at(tmp_path, corpus, table_name="own", **columns)
    add(store, corpus)
    retriever = OrderPreservingRetriever(
        vectorstore=store, k=20, similarity_threshold=-1, search_kwargs={"name": "other"}
    )
    context = ask(way, retriever, question)
    check(context, corpus, question)
    assert {chunk.metadata["tenant"] for chunk in context.kept} == {"blue"}
    assert store.embeddings.embedded == (1, 0)


@WAYS
@pytest.mark.filterwarnings("ignore:create_fts_index is deprecated")
def test_a_search_by_words(way: str, corpus: Corpus, tmp_path: Path):
    question, *_ = corpus.questions
    store = store_at(tmp_path, corpus, table_name="words")
    add(store, corpus)
    search = {"query_type": "fts"}
    assert not takes_a_vector(store, "similarity", search)
    # LangChain's own `similarity_search` hands a keyword on twice here.
    found = store.similarity_search_with_score(question, k=20, **search)
    retriever = OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1, search_kwargs=search)
    context = ask(way, retriever, question)
    assert numbers(context) == sorted(document.metadata["chunk_index"] for document in found)
    check(context, corpus, question)
    assert {chunk.score for chunk in context.kept} == {None}
    assert store.embeddings.embedded == (1, 0)
