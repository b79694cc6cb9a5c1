"""The local embedder as an embedding model of each framework."""

import asyncio
import pickle
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document, VectorStoreIndex

from oprag import LocalEmbedder, langchain, llama_index
from oprag.embedding import static
from oprag.errors import MissingExtraError

TEXTS = ["She left port in May.", "Bread is baked daily.", ""]
QUESTION = "When did she leave the port?"


class Model(NamedTuple):
    """An embedding model of a framework, with the names of its methods."""

    cls: Any
    documents: str
    question: str


@pytest.fixture(
    params=[
        Model(langchain.LocalEmbeddings, "embed_documents", "embed_query"),
        Model(llama_index.LocalEmbedding, "get_text_embedding_batch", "get_query_embedding"),
    ],
    ids=["langchain", "llama_index"],
)
def model(request: pytest.FixtureRequest) -> Model:
    given: Model = request.param
    return given


def test_vectors_are_those_of_the_local_embedder_as_lists(model: Model):
    embeddings = model.cls()
    vectors = getattr(embeddings, model.documents)(TEXTS)
    assert [len(vector) for vector in vectors] == [256] * 3
    assert all(type(number) is float for vector in vectors for number in vector)
    np.testing.assert_array_equal(np.asarray(vectors, dtype=np.float32), LocalEmbedder().embed_documents(TEXTS))
    assert getattr(embeddings, model.question)(TEXTS[0]) == vectors[0]
    assert asyncio.run(getattr(embeddings, f"a{model.documents}")(TEXTS)) == vectors
    assert asyncio.run(getattr(embeddings, f"a{model.question}")(TEXTS[1])) == vectors[1]


def test_the_model_is_not_pickled(model: Model):
    data = pickle.dumps(model.cls())
    assert len(data) < 2_000
    assert len(getattr(pickle.loads(data), model.question)("a")) == 256


def test_a_missing_extra_is_said_at_construction(model: Model, monkeypatch: pytest.MonkeyPatch):
    static.local_embedder.cache_clear()
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(MissingExtraError, match=r"install it with: pip install ('oprag\[local\]'|wordllama)"):
        model.cls()


def test_llama_index_saves_its_settings():
    saved = llama_index.LocalEmbedding(embed_batch_size=8).to_dict()
    assert (saved["class_name"], saved["model_name"]) == ("LocalEmbedding", LocalEmbedder.name)
    assert llama_index.LocalEmbedding.from_dict(saved).embed_batch_size == 8


def test_thresholds_use_it():
    store = InMemoryVectorStore.from_texts(
        TEXTS[:2], langchain.LocalEmbeddings(), [{"source": "a", "page": n} for n in (1, 2)]
    )
    found = langchain.OrderPreservingRetriever(vectorstore=store, similarity_threshold=0.2).invoke(QUESTION)
    assert [document.page_content for document in found] == TEXTS[:1]
    index = VectorStoreIndex.from_documents(
        [Document(text=text) for text in TEXTS[:2]], embed_model=llama_index.LocalEmbedding()
    )
    retriever = llama_index.OrderPreservingRetriever(
        retriever=index.as_retriever(similarity_top_k=2), index=index, similarity_threshold=0.2
    )
    assert [node.text for node in retriever.retrieve(QUESTION)] == TEXTS[:1]
