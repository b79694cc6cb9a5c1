"""`retrieve` and `synthesize` by themselves, and inside of engines that use them."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle

from tests.adapters.llama_index.conftest import ListRetriever, numbers, ranked, stamped_node, texts
from tests.adapters.llama_index.engine.conftest import Model, engine_of, every_method, full_engine, parts
from tests.adapters.scripted import QUESTION, both_sides, by_step, part_numbers

BUNDLE = QueryBundle(QUESTION)


def two_sources() -> list[NodeWithScore]:
    """Nodes of two sources, those of the first one best."""
    places = [("a", 2), ("b", 1), ("a", 0), ("b", 3), ("a", 1), ("b", 0), ("b", 2)]
    return ranked(stamped_node(f"Part {number} of {source}.", number, source=source) for source, number in places)


def unscored(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    return [NodeWithScore(node=scored.node) for scored in nodes]


async def retrieved(engine: Any, is_async: bool, query: Any = BUNDLE) -> list[NodeWithScore]:
    nodes: list[NodeWithScore] = await engine.aretrieve(query) if is_async else engine.retrieve(query)
    return nodes


async def synthesized(engine: Any, is_async: bool, nodes: Any, query: Any = BUNDLE, more: Any = None) -> Any:
    if is_async:
        return await engine.asynthesize(query, nodes, additional_source_nodes=more)
    return engine.synthesize(query, nodes, additional_source_nodes=more)


@both_sides
async def test_retrieve_gives_the_nodes_in_order_without_a_call(is_async: bool):
    model = Model()
    engine = engine_of(model, 6, k=3)
    assert numbers(await retrieved(engine, is_async)) == [3, 4, 5]
    assert model.calls == []


@both_sides
@every_method
async def test_the_parts_make_what_query_makes(method: str, is_async: bool):
    whole, apart = Model(reply=by_step), Model(reply=by_step)
    expected = full_engine(whole, method, max_concurrency=1).query(QUESTION)
    engine = full_engine(apart, method, max_concurrency=1)
    response = await synthesized(engine, is_async, await retrieved(engine, is_async))
    assert str(response) == str(expected)
    assert apart.read == whole.read
    assert texts(response.source_nodes) == texts(expected.source_nodes)


ASSEMBLIES: list[dict[str, Any]] = [
    {},
    {"token_budget": 80, "count_tokens": len},
    {"annotate": True},
    {"order": "rank"},
    {"order": "edges"},
    {"order": "random", "seed": 3},
    {"source_ranking": "best_last"},
    {"source_ranking": "name"},
]


@pytest.mark.parametrize("scored", [True, False], ids=["scored", "unscored"])
@pytest.mark.parametrize("options", ASSEMBLIES, ids=str)
@both_sides
async def test_no_order_is_applied_twice(options: dict[str, Any], is_async: bool, scored: bool):
    nodes = two_sources() if scored else unscored(two_sources())
    whole, apart = Model(), Model()
    all_of: dict[str, Any] = {"retriever": ListRetriever(nodes), "passage_tokens": 1_024} | options
    engine_of(whole, **all_of).query(QUESTION)
    engine = engine_of(apart, **all_of)
    given = await retrieved(engine, is_async)
    response = await synthesized(engine, is_async, given)
    assert texts(response.source_nodes) == texts(given)
    assert apart.read == whole.read


@both_sides
async def test_nothing_is_cut_from_what_was_retrieved_elsewhere(is_async: bool):
    model = Model()
    engine = engine_of(model, k=2, token_budget=20, count_tokens=len)
    response = await synthesized(engine, is_async, parts(6))
    assert numbers(response.source_nodes) == [0, 1, 2, 3, 4, 5]
    assert part_numbers(model.read[0]) == [0, 1, 2, 3, 4, 5]
