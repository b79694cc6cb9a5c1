"""Continuity in LlamaIndex: how many candidates are fetched, and by whom."""

import warnings

import pytest
from llama_index.core.llms import MockLLM

from oprag.errors import RetrievalWarning
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingQueryEngine,
    OrderPreservingRetriever,
    create_search_tool,
)
from tests.adapters.llama_index.test_store_order import QUESTION, index_of, numbers, windows

NODES = windows("a.txt", 1)
K = 4


def by_value(limit, k):
    """The places that are kept of the first nodes by rank."""
    found = index_of(NODES).as_retriever(similarity_top_k=limit).retrieve(QUESTION)
    kept = OrderPreservingPostprocessor(k=k, continuity=0.5, index=index_of(NODES)).postprocess_nodes(
        found, query_str=QUESTION
    )
    return numbers(kept, NODES)


def test_a_search_tool_over_an_index_fetches_four_times_k():
    tool = create_search_tool(index_of(NODES), k=K, continuity=0.5)
    found = numbers(tool.call(query=QUESTION).raw_output, NODES)
    assert found == by_value(4 * K, K)
    plain = create_search_tool(index_of(NODES), k=K)
    assert found != numbers(plain.call(query=QUESTION).raw_output, NODES)


def test_a_retriever_and_an_engine_choose_among_what_they_are_given():
    inner = index_of(NODES).as_retriever(similarity_top_k=4 * K)
    retriever = OrderPreservingRetriever(retriever=inner, k=K, continuity=0.5)
    assert numbers(retriever.retrieve(QUESTION), NODES) == by_value(4 * K, K)
    engine = OrderPreservingQueryEngine(llm=MockLLM(), retriever=inner, k=K, continuity=0.5)
    assert numbers(engine.query(QUESTION).source_nodes, NODES) == by_value(4 * K, K)


def test_a_limit_of_k_is_told():
    inner = index_of(NODES).as_retriever(similarity_top_k=K)
    retriever = OrderPreservingRetriever(retriever=inner, k=K, continuity=0.5)
    with pytest.warns(RetrievalWarning, match=r"only k=4 candidates.*retrieve 16.*similarity_top_k in LlamaIndex"):
        retriever.retrieve(QUESTION)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OrderPreservingRetriever(retriever=inner, k=2, continuity=0.5).retrieve(QUESTION)


def test_a_small_source_is_taken_whole_from_the_index():
    nodes = [*windows("large.txt", 1), *windows("small.txt", 2)[:3]]
    inner = index_of(nodes).as_retriever(similarity_top_k=18)
    found = OrderPreservingRetriever(retriever=inner, whole_source_tokens=200).retrieve(QUESTION)
    ranked = inner.retrieve(QUESTION)
    small = [place for place in numbers(found, nodes) if place >= len(nodes) - 3]
    assert any(scored.node.metadata["file_name"] == "small.txt" for scored in ranked)
    assert small == [len(nodes) - 3, len(nodes) - 2, len(nodes) - 1]
    assert len(found) < len(ranked) + 3
