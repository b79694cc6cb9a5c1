"""Every method through the clients of both frameworks, a real server and a real model."""

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever
from oprag.llama_index import OrderPreservingQueryEngine, StampPositions
from oprag.methods import Answer, Usage
from tests.integration.asking import (
    ASSEMBLY,
    CHUNKS,
    HOW,
    METHODS,
    ORDERED,
    QUESTION,
    check_calls,
    check_method,
    check_order,
)
from tests.integration.clients import chat_openai, openai_like
from tests.integration.stores.known import NodeEmbeddings

pytestmark = pytest.mark.integration


@pytest.fixture
def chain(model_server, wire, store, embeddings, reference):
    """Makes a chain with a method, and options of its own."""

    def make(method, *, stream_usage=True, **options):
        model = chat_openai(model_server, wire, stream_usage=stream_usage)
        return OrderPreservingChain(
            llm=model,
            retriever=OrderPreservingRetriever(vectorstore=store, **ASSEMBLY),
            embeddings=embeddings,
            read_source={"python-reference": reference},
            method=method,
            **HOW | options,
        )

    return make


@pytest.fixture(scope="module")
def node_embeddings(embeddings):
    return NodeEmbeddings(embeddings)


@pytest.fixture(scope="module")
def retriever(short_chunks, node_embeddings):
    nodes = [TextNode(text=chunk.page_content, metadata=dict(chunk.metadata)) for chunk in short_chunks]
    for node in nodes:
        node.excluded_embed_metadata_keys = node.excluded_llm_metadata_keys = list(node.metadata)
    index = VectorStoreIndex(StampPositions()(nodes), embed_model=node_embeddings)
    return index.as_retriever(similarity_top_k=CHUNKS)


@pytest.fixture
def engine(model_server, wire, retriever, node_embeddings, reference):
    """Makes a query engine with a method, and options of its own."""

    def make(method, **options):
        return OrderPreservingQueryEngine(
            llm=openai_like(model_server, wire),
            retriever=retriever,
            embed_model=node_embeddings,
            read_source={"python-reference": reference},
            method=method,
            **HOW | ASSEMBLY | options,
        )

    return make


@pytest.mark.parametrize("framework", ["chain", "engine"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers(method, framework, wire, request):
    answer = request.getfixturevalue(framework)(method).answer(QUESTION)
    check_calls(answer, wire)
    check_method(answer, method)
    assert not any(exchange.streamed for exchange in wire.exchanges)
    if method in ORDERED:
        check_order(answer)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_streams(method, chain, wire):
    pieces = []
    early = False
    for piece in chain(method).stream_answer(QUESTION):
        early = early or wire.exchanges[-1].ended is None
        pieces.append(piece)
    *texts, answer = pieces
    check_calls(answer, wire)
    check_method(answer, method)
    assert "".join(texts) == answer.text
    if method == "map_rerank":
        assert len(texts) == 1
    else:
        assert len(texts) > 2
        assert early
        assert wire.exchanges[-1].streamed


def test_without_figures_for_streams_an_estimate_says_so(chain, wire):
    *_, answer = chain("map_reduce", stream_usage=False).stream_answer(QUESTION)
    assert isinstance(answer, Answer)
    *maps, last = answer.calls
    assert [call.usage.estimated for call in maps] == [False] * len(maps)
    assert last.usage.estimated
    assert answer.usage.estimated
    assert 0.5 < last.usage.input_tokens / maps[0].usage.input_tokens < 2


@pytest.mark.parametrize("method", METHODS)
def test_every_method_streams_a_response(method, engine, wire):
    response = engine(method, streaming=True).query(QUESTION)
    assert response.source_nodes
    pieces = []
    early = False
    for piece in response.response_gen:
        early = early or wire.exchanges[-1].ended is None
        pieces.append(piece)
    assert early is (method != "map_rerank")
    if method != "map_rerank":
        assert "".join(pieces) == wire.exchanges[-1].reply
    # The record is complete when all of it was read.
    about = response.metadata["oprag"]
    assert about["method"] == method
    assert about["calls"] == len(wire.exchanges)
    assert Usage(**about["usage"]) == wire.usage
    starts = [scored.node.metadata["start_index"] for scored in response.source_nodes][:CHUNKS]
    assert starts == sorted(starts)
