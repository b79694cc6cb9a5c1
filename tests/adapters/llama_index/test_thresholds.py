"""Thresholds on every LlamaIndex surface, and what is embedded for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, ImageNode, NodeRelationship, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from pydantic import PrivateAttr, ValidationError

from oprag import VectorCache
from oprag.context import Context
from oprag.errors import OptionError, SerializationWarning
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingQueryEngine, OrderPreservingRetriever
from tests.adapters.llama_index.conftest import ListRetriever
from tests.counting import CountingEmbeddings

QUESTION = "Where did the captain sail?"
TEXTS = [
    "The captain did sail north.",
    "Bread is baked in an oven.",
    "The captain did sail north.",
    "Where did the captain sail from?",
    "Cats purr when they sleep.",
    "The captain did sail north again.",
]
BOTH: dict[str, Any] = {"similarity_threshold": 0.4, "redundancy_threshold": 0.99}


class CountingModel(BaseEmbedding):
    """Counts what is embedded."""

    _inner: CountingEmbeddings = PrivateAttr(default_factory=CountingEmbeddings)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._inner.embed_query(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._inner.embed_query(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._inner.embed_documents([text])[0]

    @property
    def embedded(self) -> tuple[int, int]:
        return self._inner.embedded

    def forget(self) -> None:
        self._inner.forget()


@pytest.fixture
def model() -> CountingModel:
    return CountingModel(model_name="words")


def nodes_of(source: str = "log.txt") -> list[TextNode]:
    """The nodes of one document, with the links that a splitter makes."""
    nodes = [TextNode(text=text, id_=f"{source}-{number}") for number, text in enumerate(TEXTS)]
    for number, node in enumerate(nodes):
        node.relationships[NodeRelationship.SOURCE] = TextNode(id_=source).as_related_node_info()
        if number:
            node.relationships[NodeRelationship.PREVIOUS] = nodes[number - 1].as_related_node_info()
            nodes[number - 1].relationships[NodeRelationship.NEXT] = node.as_related_node_info()
    return nodes


@pytest.fixture
def index(model: CountingModel) -> VectorStoreIndex:
    index = VectorStoreIndex(nodes_of(), embed_model=model)
    model.forget()
    return index


Ask = Callable[..., Context]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    def run(retriever: OrderPreservingRetriever, question: Any = QUESTION) -> Context:
        if request.param == "sync":
            return retriever.get_context(question)
        return asyncio.run(retriever.aget_context(question))

    return run


def kept(context: Context) -> list[str]:
    return [str(chunk.id).rpartition("-")[2] for chunk in context.kept]


def ids(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node_id.rpartition("-")[2] for node in nodes]


def cosine(model: CountingModel, first: str, second: str) -> float:
    one, other = np.array(model._inner._vector(first)), np.array(model._inner._vector(second))
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_retriever_of_an_index_embeds_the_question_alone_and_once(index, model, ask):
    retriever = OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=6), **BOTH)
    context = ask(retriever)
    assert model.embedded == (1, 0)
    assert kept(context) == ["0", "3", "5"]
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(cosine(model, QUESTION, chunk.text), abs=1e-6)
    assert {drop.reason for drop in context.dropped} == {"similarity_threshold", "redundancy_threshold"}
    model.forget()
    assert ask(retriever) == context
    assert model.embedded == (0, 0)
    strict = context.with_thresholds(similarity_threshold=0.99, min_chunks=1)
    assert len(strict.kept) == 1
    assert model.embedded == (0, 0)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_postprocessor_reads_the_query_s_vector_and_those_of_its_index(index, model, way):
    engine = index.as_query_engine(
        llm=MockLLM(),
        similarity_top_k=6,
        node_postprocessors=[OrderPreservingPostprocessor(index=index, **BOTH)],
    )
    response = engine.query(QUESTION) if way == "sync" else asyncio.run(engine.aquery(QUESTION))
    assert ids(response.source_nodes) == ["0", "3", "5"]
    # An async retriever of LlamaIndex keeps the vector of the query to itself.
    assert model.embedded == ((1, 0) if way == "sync" else (2, 0))


def test_a_postprocessor_with_a_model_alone_embeds_each_text_once(index, model):
    postprocessor = OrderPreservingPostprocessor(embed_model=model, **BOTH)
    nodes = index.as_retriever(similarity_top_k=6).retrieve(QUESTION)
    model.forget()
    found = postprocessor.postprocess_nodes(nodes, query_str=QUESTION)
    assert ids(found) == ["0", "3", "5"]
    assert found[0] in nodes
    assert model.embedded == (1, 5)
    model.forget()
    assert ids(postprocessor.postprocess_nodes(nodes, query_str=QUESTION)) == ["0", "3", "5"]
    assert ids(asyncio.run(postprocessor.apostprocess_nodes(nodes, query_str=QUESTION))) == ["0", "3", "5"]
    assert kept(postprocessor.get_context(nodes, QUESTION)) == ["0", "3", "5"]
    assert model.embedded == (0, 0)


def test_similarity_needs_the_query(index):
    nodes = index.as_retriever().retrieve(QUESTION)
    with pytest.raises(OptionError, match="similarity_threshold requires the query"):
        OrderPreservingPostprocessor(index=index, similarity_threshold=0.1).postprocess_nodes(nodes)
    assert OrderPreservingPostprocessor(index=index, redundancy_threshold=0.99).postprocess_nodes(nodes)


def test_nodes_are_embedded_with_their_metadata_as_llama_index_does(model):
    node = TextNode(text="Bread is baked.", metadata={"title": "Cooking", "chunk_index": 0, "file_name": "a"})
    node.excluded_embed_metadata_keys = ["chunk_index", "file_name"]
    OrderPreservingPostprocessor(embed_model=model, redundancy_threshold=0.9).postprocess_nodes(
        [NodeWithScore(node=node)]
    )
    assert model._inner.documents == ["title: Cooking\n\nBread is baked."]


def test_a_query_that_was_expanded_has_the_mean_of_its_vectors(index, model, ask):
    bundle = QueryBundle(QUESTION, custom_embedding_strs=[TEXTS[0], TEXTS[1]])
    context = ask(
        OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=6), similarity_threshold=-1), bundle
    )
    assert model.embedded == (2, 0)
    mean = np.mean([model._inner._vector(text) for text in TEXTS[:2]], axis=0)
    for chunk in context.kept:
        assert chunk.vector is not None
        expected = float(mean @ chunk.vector / np.linalg.norm(mean) / np.linalg.norm(chunk.vector))
        assert chunk.similarity == pytest.approx(expected, abs=1e-6)


async def test_each_index_of_a_fusion_is_searched_with_its_own_model(index):
    other = CountingModel(model_name="other")
    second = VectorStoreIndex(nodes_of("b.txt"), embed_model=other)
    other.forget()
    fused = QueryFusionRetriever(
        [index.as_retriever(), second.as_retriever()], llm=MockLLM(), num_queries=1, use_async=False
    )
    # Its sync search gives all retrievers the vector of the first.
    await OrderPreservingRetriever(retriever=fused, similarity_threshold=-1).aretrieve(QUESTION)
    assert other._inner.questions == [QUESTION]


def test_an_engine_around_our_retriever_uses_its_cache(index, model, tmp_path):
    path = tmp_path / "vectors.db"
    nodes = index.as_retriever(similarity_top_k=6).retrieve(QUESTION)

    def ask() -> None:
        cache = VectorCache(path, namespace="words")
        retriever = OrderPreservingRetriever(
            retriever=ListRetriever(nodes), embed_model=model, vector_cache=cache, **BOTH
        )
        engine = OrderPreservingQueryEngine(llm=MockLLM(), retriever=retriever, embed_model=model, method="reciprocal")
        engine.query(QUESTION)
        engine.model_copy(update={"passage_tokens": 512}).query(QUESTION)

    model.forget()
    ask()
    kept = len(VectorCache(path, namespace="words"))
    assert kept == 5
    model.forget()
    ask()
    # Answers, and the questions that the model made, are other texts than those of the source.
    assert not set(TEXTS) & set(model._inner.documents)
    assert len(model._inner.questions) == 2
    assert len(VectorCache(path, namespace="words")) == kept


def test_the_cache_of_our_retriever_is_set_there(index):
    ours = OrderPreservingRetriever(retriever=index.as_retriever())
    with pytest.raises(ValidationError, match="which has its own options; set vector_cache there"):
        OrderPreservingQueryEngine(llm=MockLLM(), retriever=ours, vector_cache=VectorCache())


@pytest.mark.parametrize("given", ["a model", object(), 3])
def test_what_is_no_part_is_refused(given, index):
    retriever = index.as_retriever()
    for make in (
        OrderPreservingPostprocessor,
        lambda **options: OrderPreservingRetriever(retriever=retriever, **options),
        lambda **options: OrderPreservingQueryEngine(llm=MockLLM(), retriever=retriever, **options),
    ):
        with pytest.raises(ValidationError, match="embed_model must be a LlamaIndex embedding model"):
            make(embed_model=given)
        with pytest.raises(ValidationError, match=r"vector_cache\n.* instance of VectorCache"):
            make(vector_cache=given)
        with pytest.raises(ValidationError, match=r"read_neighbors.callable\n.* callable"):
            make(read_neighbors=given)
    with pytest.raises(ValidationError, match="index must be a LlamaIndex index"):
        OrderPreservingPostprocessor(index=given)


def test_parts_are_left_out_when_a_postprocessor_is_saved(index):
    postprocessor = OrderPreservingPostprocessor(index=index, **BOTH)
    data = postprocessor.to_dict()
    assert "index" not in data
    assert data["similarity_threshold"] == 0.4
    assert data["left_out"] == ["index"]
    with pytest.warns(SerializationWarning, match="index"), pytest.raises(ValidationError, match="pass embed_model="):
        OrderPreservingPostprocessor.from_dict(data)
    assert OrderPreservingPostprocessor.from_dict(data, index=index).similarity_threshold == 0.4


# Neighbours.


def test_neighbours_come_from_the_docstore_in_order_and_scores_are_kept(index):
    # F2: LlamaIndex's own postprocessor gives 3 4 5 0 1 for these hits, or loses scores.
    by_id = {node.node_id: node for node in nodes_of()}
    hits = [
        NodeWithScore(node=by_id[f"log.txt-{number}"], score=score) for number, score in ((4, 0.9), (0, 0.8), (1, 0.7))
    ]
    theirs = PrevNextNodePostprocessor(docstore=index.docstore, num_nodes=1, mode="both").postprocess_nodes(hits)
    assert ids(theirs) != sorted(ids(theirs)) or any(node.score is None for node in theirs if ids([node])[0] in "401")
    found = OrderPreservingPostprocessor(read_neighbors=index.docstore, neighbors=1).postprocess_nodes(hits)
    assert ids(found) == ["0", "1", "2", "3", "4", "5"]
    assert [node.score for node in found] == [0.8, 0.7, None, None, 0.9, None]


def test_neighbours_of_real_nodes_stay_in_their_document():
    documents = [Document(text=" ".join(f"{name}{n}." for n in range(200)), id_=name) for name in ("ant", "bee")]
    nodes = SentenceSplitter(chunk_size=40, chunk_overlap=0).get_nodes_from_documents(documents)
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    last = [node for node in nodes if node.ref_doc_id == "ant"][-1]
    # #13095: links once led into the next document; here somebody made one that does.
    first = next(node for node in nodes if node.ref_doc_id == "bee")
    last.relationships[NodeRelationship.NEXT] = first.as_related_node_info()
    found = OrderPreservingPostprocessor(read_neighbors=docstore, neighbors=2).postprocess_nodes(
        [NodeWithScore(node=last)]
    )
    assert len(found) == 3
    assert {node.node.ref_doc_id for node in found} == {"ant"}
    assert found[-1].node is last


def test_an_empty_docstore_says_how_to_fill_it():
    postprocessor = OrderPreservingPostprocessor(read_neighbors=SimpleDocumentStore(), neighbors=1)
    with pytest.raises(OptionError, match=r"the docstore does not contain node .*store_nodes_override=True"):
        postprocessor.postprocess_nodes([NodeWithScore(node=nodes_of()[2])])


def test_a_function_gives_neighbours(index):
    nodes = nodes_of()
    places = {node.node_id: place for place, node in enumerate(nodes)}

    def around(node: Any, number: int) -> list[TextNode]:
        place = places[node.node_id]
        return nodes[max(0, place - number) : place + number + 1]

    postprocessor = OrderPreservingPostprocessor(read_neighbors=around, neighbors=1)
    assert ids(postprocessor.postprocess_nodes([NodeWithScore(node=nodes[2])])) == ["1", "2", "3"]
    with pytest.raises(ValidationError, match="requires read_neighbors; pass read_neighbors="):
        OrderPreservingPostprocessor(neighbors=1)


# What a hostile application brings.


def test_pictures_are_like_nothing_and_repeat_nothing(model):
    pictures = [ImageNode(image_path=f"{number}.png", metadata={"file_name": "album"}) for number in range(3)]
    nodes = [NodeWithScore(node=node) for node in [*pictures, *nodes_of()[:1], *nodes_of()[2:3]]]
    postprocessor = OrderPreservingPostprocessor(embed_model=model, order="rank", **BOTH)
    found = postprocessor.postprocess_nodes(nodes, query_str=QUESTION)
    assert [type(node.node).__name__ for node in found] == ["ImageNode"] * 3 + ["TextNode"]
    assert model.embedded == (1, 1)
    only = postprocessor.postprocess_nodes(nodes[:3], query_str=QUESTION)
    assert only == nodes[:3]


def test_a_node_that_was_deleted_ends_the_chain(index):
    index.delete_nodes(["log.txt-3"], delete_from_docstore=True)
    by_id = {node.node_id: node for node in nodes_of()}
    hit = NodeWithScore(node=by_id["log.txt-2"])
    found = OrderPreservingPostprocessor(read_neighbors=index.docstore, neighbors=2).postprocess_nodes([hit])
    assert ids(found) == ["0", "1", "2"]


def test_a_query_that_is_a_picture_has_no_words_to_compare(index):
    nodes = index.as_retriever().retrieve(QUESTION)
    postprocessor = OrderPreservingPostprocessor(index=index, similarity_threshold=0.1)
    with pytest.raises(OptionError, match="similarity_threshold requires a query with a text"):
        postprocessor.postprocess_nodes(nodes, QueryBundle("", image_path="a.png"))
