"""The embedding model where none is given: that of the index, else that of `Settings`, never a default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import ValidationError

from oprag.errors import EmbeddingError
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingQueryEngine, OrderPreservingRetriever
from tests.adapters.llama_index.conftest import ListRetriever
from tests.adapters.llama_index.test_thresholds import CountingModel

QUESTION = "Where did the captain sail?"
NODES = [
    TextNode(text=text, metadata={"source": "book", "chunk_index": at})
    for at, text in enumerate(("The captain did sail north.", "Cats purr when they sleep."))
]
FOUND = [NodeWithScore(node=node) for node in NODES]
THRESHOLD = {"similarity_threshold": 0.1}


def postprocessor(**options: Any) -> Callable[[], Any]:
    ours = OrderPreservingPostprocessor(**options)
    return lambda: ours.postprocess_nodes(FOUND, query_str=QUESTION)


def retriever(**options: Any) -> Callable[[], Any]:
    ours = OrderPreservingRetriever(**{"retriever": ListRetriever(FOUND), **options})
    return lambda: ours.retrieve(QUESTION)


def engine(**options: Any) -> Callable[[], Any]:
    ours = OrderPreservingQueryEngine(**{"llm": MockLLM(), "retriever": ListRetriever(FOUND), **options})
    return lambda: ours.query(QUESTION)


COSINE = {"method": "map_rerank", "rank_by": "cosine"}
MAKERS = [
    pytest.param(postprocessor, THRESHOLD, id="postprocessor"),
    pytest.param(retriever, THRESHOLD, id="retriever"),
    pytest.param(engine, THRESHOLD, id="engine"),
    pytest.param(engine, {"method": "reciprocal"}, id="reciprocal"),
    pytest.param(engine, COSINE, id="cosine"),
]
every_maker = pytest.mark.parametrize(("make", "options"), MAKERS)


@pytest.fixture
def model():
    return CountingModel(model_name="of the index")


@pytest.fixture
def index(model):
    made = VectorStoreIndex(NODES, embed_model=model)
    model._inner.questions.clear()
    return made


@pytest.fixture
def of_settings(monkeypatch):
    model = CountingModel(model_name="of Settings")
    monkeypatch.setattr(Settings, "_embed_model", model)
    return model


@every_maker
@pytest.mark.parametrize("configured", [None, MockEmbedding(embed_dim=1)], ids=["not set", "set to None"])
def test_where_nothing_is_known_the_option_is_named_and_no_default_is_loaded(make, options, configured, monkeypatch):
    monkeypatch.setattr(Settings, "_embed_model", configured)
    with pytest.raises(ValidationError, match=r"(pass|needs) embed_model="):
        make(**options)
    assert Settings._embed_model is configured


@pytest.mark.parametrize(("make", "options"), MAKERS[1:])
def test_the_index_of_a_wrapped_retriever_is_known(make, options, index, model, of_settings):
    make(retriever=index.as_retriever(), **options)()
    assert model._inner.questions
    assert of_settings._inner.questions == []


@pytest.mark.parametrize("option", ["similarity_threshold", "redundancy_threshold"])
def test_a_model_that_is_gone_at_the_question_is_an_error_that_names_the_option(option, of_settings, monkeypatch):
    ask = retriever(**{option: 0.5})
    monkeypatch.setattr(Settings, "_embed_model", None)
    with pytest.raises(EmbeddingError, match="pass embed_model="):
        ask()


@pytest.fixture
def vectors_alone(monkeypatch):
    """A retriever over a store that has vectors, of which one repeats another, and no model."""
    monkeypatch.setattr(Settings, "_embed_model", None)
    repeated = [*NODES, TextNode(text="The captain sailed north!", metadata={"source": "book", "chunk_index": 2})]
    embeddings = [[1.0, 0.0], [0.0, 1.0], [0.999, 0.001]]
    made = [node.model_copy(update={"embedding": vector}) for node, vector in zip(repeated, embeddings, strict=True)]
    index = VectorStoreIndex(made, embed_model=CountingModel(model_name="of nobody"))
    index._embed_model = None  # type: ignore[assignment]
    return index.as_retriever(similarity_top_k=3)


def asked_by_vector(ours: Any) -> list[int]:
    return [scored.node.metadata["chunk_index"] for scored in ours.retrieve(QueryBundle(QUESTION, embedding=[1.0, 0]))]


def test_the_vectors_of_the_store_are_not_compared_with_those_of_settings(vectors_alone, of_settings):
    ours = OrderPreservingRetriever(retriever=vectors_alone, redundancy_threshold=0.9)
    assert asked_by_vector(ours) == [0, 1, 2]
    assert of_settings.embedded == (0, 3)
