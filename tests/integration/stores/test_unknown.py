"""A store that nothing is known about: its vectors are made once, and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult
from pydantic import PrivateAttr

from oprag import VectorCache
from oprag.langchain import OrderPreservingRetriever
from oprag.llama_index import OrderPreservingRetriever as NodeRetriever
from oprag.stores.adapter import adapter_of
from tests.integration.stores.checks import check
from tests.integration.stores.corpus import FETCH_K, OPTIONS, Corpus, identify
from tests.integration.stores.known import KnownEmbeddings, KnownModel, node_of
from tests.unknown_store import UnknownStore

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]

WAYS = pytest.mark.parametrize("way", ["sync", "async"])


class UnknownNodeStore(BasePydanticVectorStore):
    """Does what another store does."""

    stores_text: bool = True
    _inner: Any = PrivateAttr()

    def __init__(self, inner: Any) -> None:
        super().__init__(stores_text=True)
        self._inner = inner

    @property
    def client(self) -> Any:
        return None

    def add(self, nodes: Any, **kwargs: Any) -> list[str]:
        return self._inner.add(nodes, **kwargs)  # type: ignore[no-any-return]

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self._inner.delete(ref_doc_id, **kwargs)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        found: VectorStoreQueryResult = self._inner.query(query, **kwargs)
        return found


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture(scope="module")
def store(client: Any, corpus: Corpus) -> UnknownStore:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import models

    size = corpus.vectors.shape[1]
    client.create_collection("known", vectors_config=models.VectorParams(size=size, distance=models.Distance.DOT))
    store = QdrantVectorStore(
        client=client, collection_name="known", embedding=KnownEmbeddings(corpus), distance=models.Distance.DOT
    )
    store.add_documents(
        [Document(text, metadata=corpus.metadata(number, "red")) for number, text in enumerate(corpus.texts)]
    )
    return UnknownStore(store)


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
@WAYS
def test_documents(way: str, kept: str, store: UnknownStore, corpus: Corpus, tmp_path: Path):
    assert adapter_of(store) is None
    question, *_ = corpus.questions
    in_memory = OrderPreservingRetriever(vectorstore=store, **OPTIONS)

    def ask() -> Any:
        retriever = in_memory
        if kept == "in a file":
            # Another retriever each time, with nothing in common but the file.
            retriever = OrderPreservingRetriever(
                vectorstore=store,
                embeddings=store.embeddings,
                vector_cache=VectorCache(tmp_path / "vectors.db", namespace="words"),
                **OPTIONS,
            )
        return retriever.get_context(question) if way == "sync" else asyncio.run(retriever.aget_context(question))

    store.embeddings.forget()
    check(ask(), corpus, question, "red")
    # The store embeds the question by itself.
    assert store.embeddings.questions == [question] * 2
    assert len(store.embeddings.chunks) == FETCH_K
    store.embeddings.forget()
    check(ask(), corpus, question, "red")
    # Questions are in no file.
    assert store.embeddings.questions == [question] * (2 if kept == "in a file" else 1)
    assert store.embeddings.chunks == []


@WAYS
def test_nodes(way: str, client: Any, corpus: Corpus):
    from llama_index.vector_stores.qdrant import QdrantVectorStore

    store = UnknownNodeStore(QdrantVectorStore(f"nodes_{way}", client=client))
    assert adapter_of(store) is None
    embeddings = KnownEmbeddings(corpus)
    nodes = [
        node_of(text, identify(way, "red", number), corpus.metadata(number, "red"))
        for number, text in enumerate(corpus.texts)
    ]
    storage = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=KnownModel(embeddings))
    retriever = NodeRetriever(retriever=index.as_retriever(similarity_top_k=FETCH_K), **OPTIONS)
    question, *_ = corpus.questions
    for embedded in ((1, FETCH_K), (0, 0)):
        embeddings.forget()
        context = retriever.get_context(question) if way == "sync" else asyncio.run(retriever.aget_context(question))
        check(context, corpus, question, "red")
        assert embeddings.embedded == embedded
