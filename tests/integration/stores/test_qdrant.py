"""What Qdrant does in ways of its own: ids of several forms, and searches that need the words."""

from __future__ import annotations

import asyncio
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex

from oprag.langchain import OrderPreservingRetriever
from oprag.llama_index import OrderPreservingRetriever as NodeRetriever
from oprag.stores.listing import chunks_in_search
from tests.integration.stores.checks import (
    CHUNKS,
    WAYS,
    adapter_of_store,
    ask,
    check_similarities,
    documents_of,
    numbers,
)
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings, NodeEmbeddings, node_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]

IDS = {
    "numbers": lambda number: number + 1,
    "with_dashes": lambda number: str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))),
    "without_dashes": lambda number: uuid.uuid5(uuid.NAMESPACE_URL, str(number)).hex,
    "in_capitals": lambda number: str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))).upper(),
}


@pytest.fixture
def client() -> Iterator[Any]:
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")
    yield client
    client.close()


def store_of(corpus: Corpus, client: Any, mode: str, ids: list[Any]) -> Any:
    """A store in a mode: "dense", "sparse" or "hybrid"."""
    from langchain_qdrant import QdrantVectorStore, RetrievalMode
    from langchain_qdrant.sparse_embeddings import SparseVector
    from qdrant_client import models

    class Words:
        """The words of a text, counted."""

        def embed_documents(self, texts: list[str]) -> list[SparseVector]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> SparseVector:
            words = Counter(zlib.crc32(word.encode()) % 100_000 for word in text.lower().split())
            return SparseVector(indices=list(words), values=[float(count) for count in words.values()])

    dense = models.VectorParams(size=corpus.vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection(
        mode,
        vectors_config={} if mode == "sparse" else dense,
        sparse_vectors_config=None if mode == "dense" else {"langchain-sparse": models.SparseVectorParams()},
    )
    store = QdrantVectorStore(
        client=client,
        collection_name=mode,
        embedding=None if mode == "sparse" else KnownEmbeddings(corpus),
        sparse_embedding=None if mode == "dense" else Words(),
        retrieval_mode=RetrievalMode(mode),
    )
    store.add_documents(documents_of(corpus), ids=ids)
    return store


def ids_of(form: str) -> list[Any]:
    return [IDS[form](number) for number in range(CHUNKS)]


@pytest.mark.parametrize("form", IDS)
def test_ids_of_documents(form: str, corpus: Corpus, client: Any):
    question, *_ = corpus.questions
    store = store_of(corpus, client, "dense", ids_of(form))
    store.embeddings.forget()
    retriever = OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1)
    context = retriever.get_context(question)
    assert store.embeddings.embedded == (1, 0)
    check_similarities(context, corpus, question)


@pytest.mark.parametrize("form", ["with_dashes", "without_dashes", "in_capitals"])
@WAYS
def test_ids_of_nodes(form: str, way: str, corpus: Corpus, client: Any):
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import AsyncQdrantClient

    question, *_ = corpus.questions
    embeddings = KnownEmbeddings(corpus)
    model = NodeEmbeddings(embeddings)
    texts = corpus.texts[:CHUNKS]
    nodes = [node_of(text, IDS[form](number), corpus.metadata(number, "red")) for number, text in enumerate(texts)]
    if way == "sync":
        store = QdrantVectorStore("nodes", client=client)
        index = VectorStoreIndex(
            nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=model
        )
    else:
        store = QdrantVectorStore("nodes", aclient=AsyncQdrantClient(":memory:"))
        asyncio.run(store.async_add(model(nodes)))
        index = VectorStoreIndex.from_vector_store(store, embed_model=model)
    embeddings.forget()
    retriever = NodeRetriever(retriever=index.as_retriever(similarity_top_k=20), similarity_threshold=-1)
    context = ask(way, retriever, question)
    assert embeddings.embedded == (1, 0)
    check_similarities(context, corpus, question)


@WAYS
def test_a_hybrid_search_is_one_by_words(way: str, corpus: Corpus, client: Any):
    question, *_ = corpus.questions
    store = store_of(corpus, client, "hybrid", ids_of("with_dashes"))
    found = store.similarity_search(question, k=20)
    store.embeddings.forget()
    retriever = OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1)
    context = ask(way, retriever, question)
    assert numbers(context) == sorted(document.metadata["chunk_index"] for document in found)
    # The store embeds the question by itself, and its vectors are read.
    assert store.embeddings.questions == [question] * 2
    assert store.embeddings.chunks == []
    check_similarities(context, corpus, question)


@pytest.mark.parametrize("form", IDS)
def test_chunks_are_listed_and_written_by_ids_of_any_form(form: str, corpus: Corpus, client: Any):
    store = store_of(corpus, client, "dense", ids_of(form))
    chunks = list(adapter_of_store(store).chunks() or ())
    assert sorted(chunk.text for chunk in chunks) == sorted(corpus.texts[:CHUNKS])
    found = store.similarity_search("exception", k=5)
    keys = {chunk.text: chunk.key for chunk in chunks}
    assert [keys[one.page_content] for one in found] == [str(one.metadata["_id"]) for one in found]
    adapter_of_store(store).write({keys[text]: {"place": number} for number, text in enumerate(corpus.texts[:9])})
    written = {chunk.text: chunk.metadata for chunk in adapter_of_store(store).chunks() or ()}
    for number, text in enumerate(corpus.texts[:CHUNKS]):
        assert written[text] == {**corpus.metadata(number, "red"), **({"place": number} if number < 9 else {})}


def test_payload_keys_of_any_name_and_missing_metadata(corpus: Corpus, client: Any):
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import models

    client.create_collection(
        "dots", vectors_config=models.VectorParams(size=corpus.vectors.shape[1], distance=models.Distance.COSINE)
    )
    store = QdrantVectorStore(
        client=client,
        collection_name="dots",
        embedding=KnownEmbeddings(corpus),
        content_payload_key="body",
        metadata_payload_key="about",
    )
    texts = corpus.texts[:3]
    store.add_texts(texts, [{"the.source": "a"}, {"the.source": "b"}, {"the": {"source": "a"}}], ids=[1, 2, 3])
    store.add_texts(corpus.texts[3:4], ids=[4])
    adapter = adapter_of_store(store)
    assert [chunk.key for chunk in adapter.chunks("the.source", {"a"}) or ()] == ["1"]
    adapter.write({"1": {"chunk_index": 1}, "4": {"chunk_index": 4}})
    payloads = [point.payload for point in client.scroll("dots")[0]]
    assert payloads == [
        {"body": texts[0], "about": {"the.source": "a", "chunk_index": 1}},
        {"body": texts[1], "about": {"the.source": "b"}},
        {"body": texts[2], "about": {"the": {"source": "a"}}},
        {"body": corpus.texts[3], "about": {"chunk_index": 4}},
    ]


def test_more_chunks_than_a_request_takes(corpus: Corpus, client: Any):
    from qdrant_client import models

    store = store_of(corpus, client, "dense", ids_of("numbers"))
    point = models.PointStruct(id=0, vector=corpus.vectors[0].tolist(), payload={"page_content": "more"})
    client.upload_points("dense", (point.model_copy(update={"id": number}) for number in range(1_000, 3_500)))
    chunks = list(adapter_of_store(store).chunks() or ())
    assert len({chunk.key for chunk in chunks}) == CHUNKS + 2_500
    adapter_of_store(store).write({chunk.key: {"chunk_index": int(chunk.key)} for chunk in chunks})
    after = list(adapter_of_store(store).chunks() or ())
    assert [chunk.metadata["chunk_index"] for chunk in after] == [int(chunk.key) for chunk in after]


def test_filters_that_cannot_be_applied_are_not_ignored(corpus: Corpus, client: Any):
    store = store_of(corpus, client, "dense", ids_of("numbers"))
    searches: list[dict[str, Any]] = [{"query_filter": "any"}, {"filter": {"must": []}}, {"shard_key_selector": "red"}]
    for search in searches:
        assert chunks_in_search(adapter_of_store(store, **search)) is None
    assert chunks_in_search(adapter_of_store(store, filter=None, score_threshold=0.5)) is not None
