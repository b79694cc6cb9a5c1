"""Continuity in LlamaIndex: how many candidates are fetched, and by whom."""

from oprag.llama_index import (
    OrderPreservingPostprocessor,
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
