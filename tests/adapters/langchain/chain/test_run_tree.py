"""What tracing sees: one run of the chain, with the retriever's and every call of the model inside it, by name."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tracers.schemas import Run

from oprag.errors import ModelError
from tests.adapters.langchain.chain.conftest import (
    Model,
    Starts,
    chain_of,
    descendants,
    every_way,
    full_chain,
    run,
)
from tests.adapters.scripted import QUESTION, both_sides, by_step
from tests.meeting import Meeting

CHAIN = "OrderPreservingChain"
RETRIEVED: Any = ("OrderPreservingRetriever", "retriever", [("Found", "retriever", [])])


def seen(one: Run) -> Any:
    """Names and kinds, children in the sequence of their start."""
    return (one.name, one.run_type, [seen(child) for child in sorted(one.child_runs, key=lambda run: run.start_time)])


def call(step: str) -> Any:
    # Older versions of LangChain call the run of a chat model "llm" as well.
    return (step, "chat_model", [])


def kinds(tree: Any) -> Any:
    name, kind, children = tree
    return (name, "chat_model" if kind == "llm" else kind, [kinds(child) for child in children])


STEPS_OF = {
    "stuff": ["answer"],
    "refine": ["answer", "refine", "refine"],
    "map_reduce": ["map", "map", "map", "reduce"],
    "map_rerank": ["rerank", "rerank", "rerank"],
    "long_context": ["answer"],
    "self_route": ["route", "answer"],
}


@every_way
@pytest.mark.parametrize("method", list(STEPS_OF))
async def test_the_retriever_and_every_call_are_children_of_the_chain(collector, way: str, method: str):
    chain = full_chain(Model(reply=by_step), method, count=3)
    await run(chain, way, QUESTION, {"callbacks": [collector]})
    (root,) = collector.traced_runs
    assert kinds(seen(root)) == (CHAIN, "chain", [RETRIEVED, *map(call, STEPS_OF[method])])
    assert root.parent_run_id is None
    assert root.error is None


async def test_the_calls_know_their_parent_from_every_thread():
    starts = Starts()
    chain = chain_of(Model(meeting=Meeting(4)), count=8, method="map_reduce")
    chain.batch([QUESTION, "Another?"], {"callbacks": [starts], "max_concurrency": 4})
    roots = {about["run_id"] for about in starts.chains}
    assert len(roots) == 2
    parents = [about["parent_run_id"] for about in starts.models]
    assert {parents.count(root) for root in roots} == {9}


@both_sides
async def test_a_failed_call_ends_all_runs_with_their_errors(collector, is_async: bool):
    chain = chain_of(Model(error=lambda number: ConnectionError("away")))
    with pytest.raises(ModelError):
        await run(chain, "ainvoke" if is_async else "invoke", QUESTION, {"callbacks": [collector]})
    (root,) = collector.traced_runs
    assert "ModelError" in str(root.error)
    failed = [one for one in root.child_runs if one.error is not None]
    assert [one.name for one in failed] == ["answer"]
    assert "away" in str(failed[0].error)
    assert all(one.end_time is not None for one in [root, *descendants(root)])
