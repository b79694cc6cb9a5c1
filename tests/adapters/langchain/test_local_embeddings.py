"""The local embedder as LangChain embeddings."""

import pickle
import sys
import threading

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from oprag import LocalEmbedder
from oprag.embedding import static
from oprag.errors import MissingExtraError
from oprag.langchain import LocalEmbeddings, OrderPreservingRetriever, as_embedder

TEXTS = ["She left port in May.", "Bread is baked daily.", ""]


def test_vectors_are_those_of_the_local_embedder_as_lists():
    embeddings = LocalEmbeddings()
    vectors = embeddings.embed_documents(TEXTS)
    assert [len(vector) for vector in vectors] == [256] * 3
    assert all(type(number) is float for vector in vectors for number in vector)
    np.testing.assert_array_equal(np.asarray(vectors, dtype=np.float32), LocalEmbedder().embed_documents(TEXTS))
    assert embeddings.embed_query(TEXTS[0]) == vectors[0]
    assert embeddings.embed_documents([]) == []


async def test_async_methods_return_the_same_from_a_thread(monkeypatch):
    threads = []
    embed = LocalEmbedder.embed_documents

    def noting(self, texts):
        threads.append(threading.current_thread())
        return embed(self, texts)

    embeddings = LocalEmbeddings()
    expected = embeddings.embed_documents(TEXTS)
    monkeypatch.setattr(LocalEmbedder, "embed_documents", noting)
    assert await embeddings.aembed_documents(TEXTS) == expected
    assert await embeddings.aembed_query(TEXTS[1]) == expected[1]
    assert len(threads) == 2
    assert threading.main_thread() not in threads


def test_the_model_is_loaded_once_and_not_pickled():
    one, other = LocalEmbeddings(), LocalEmbeddings()
    assert one.embedder is other.embedder
    data = pickle.dumps(one)
    assert len(data) < 200
    assert pickle.loads(data).embed_query("a") == one.embed_query("a")


def test_as_embedder_takes_the_embedder_itself():
    embeddings = LocalEmbeddings()
    assert as_embedder(embeddings) is embeddings.embedder


def test_as_embedder_keeps_what_a_subclass_changes():
    class Upper(LocalEmbeddings):
        def embed_documents(self, texts):
            return super().embed_documents([text.upper() for text in texts])

    assert as_embedder(Upper()).embed_documents(["may"]) == LocalEmbeddings().embed_documents(["MAY"])


def test_thresholds_of_a_store_use_it():
    store = InMemoryVectorStore.from_texts(TEXTS[:2], LocalEmbeddings(), [{"source": "a", "page": n} for n in (1, 2)])
    retriever = OrderPreservingRetriever(vectorstore=store, similarity_threshold=0.2)
    assert [document.page_content for document in retriever.invoke("When did she leave the port?")] == TEXTS[:1]


def test_a_missing_extra_is_said_at_construction(monkeypatch):
    static.local_embedder.cache_clear()
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'oprag\[local\]'"):
        LocalEmbeddings()
