"""The local embedder as a LlamaIndex embedding model."""

import pickle
import sys
import threading

import numpy as np
import pytest
from llama_index.core import Document, VectorStoreIndex

from oprag import LocalEmbedder
from oprag.embedding import static
from oprag.errors import MissingExtraError
from oprag.llama_index import LocalEmbedding, OrderPreservingRetriever

TEXTS = ["She left port in May.", "Bread is baked daily.", "a"]


def test_vectors_are_those_of_the_local_embedder_as_lists():
    embedding = LocalEmbedding()
    vectors = embedding.get_text_embedding_batch(TEXTS)
    assert [len(vector) for vector in vectors] == [256] * 3
    assert all(type(number) is float for vector in vectors for number in vector)
    np.testing.assert_array_equal(np.asarray(vectors, dtype=np.float32), LocalEmbedder().embed_documents(TEXTS))
    assert embedding.get_query_embedding(TEXTS[0]) == embedding.get_text_embedding(TEXTS[0]) == vectors[0]


async def test_async_methods_return_the_same_from_a_thread(monkeypatch):
    threads = []
    embed = LocalEmbedder.embed_documents

    def noting(self, texts):
        threads.append(threading.current_thread())
        return embed(self, texts)

    embedding = LocalEmbedding()
    expected = embedding.get_text_embedding_batch(TEXTS)
    monkeypatch.setattr(LocalEmbedder, "embed_documents", noting)
    assert await embedding.aget_text_embedding_batch(TEXTS) == expected
    assert await embedding.aget_text_embedding(TEXTS[1]) == expected[1]
    assert await embedding.aget_query_embedding(TEXTS[1]) == expected[1]
    assert len(threads) == 3
    assert threading.main_thread() not in threads


def test_the_model_is_loaded_once_and_not_pickled():
    one, other = LocalEmbedding(), LocalEmbedding()
    assert one.embedder is other.embedder
    data = pickle.dumps(one)
    assert len(data) < 2_000
    assert pickle.loads(data).get_query_embedding("a") == one.get_query_embedding("a")


def test_serialization_keeps_its_settings():
    saved = LocalEmbedding(embed_batch_size=8).to_dict()
    assert saved["class_name"] == "LocalEmbedding"
    assert saved["model_name"] == LocalEmbedder.name
    assert LocalEmbedding.from_dict(saved).embed_batch_size == 8


def test_thresholds_of_an_index_use_it():
    index = VectorStoreIndex.from_documents([Document(text=text) for text in TEXTS[:2]], embed_model=LocalEmbedding())
    retriever = OrderPreservingRetriever(
        retriever=index.as_retriever(similarity_top_k=2), index=index, similarity_threshold=0.2
    )
    assert [node.text for node in retriever.retrieve("When did she leave the port?")] == TEXTS[:1]


def test_a_missing_extra_is_said_at_construction(monkeypatch):
    static.local_embedder.cache_clear()
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'oprag\[local\]'"):
        LocalEmbedding()
