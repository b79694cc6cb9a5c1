"""A batch or a stream of a chain that ends early leaves nothing running."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.adapters.langchain.chain.conftest import Model, chain_of
from tests.adapters.scripted import QUESTION
from tests.meeting import until


async def started(model: Model, calls: int) -> None:
    """Wait until so many calls have begun."""
    await until(lambda: len(model.calls) >= calls, lambda: f"{len(model.calls)} calls have begun, and not {calls}")


async def settled(model: Model) -> int:
    """How many calls have begun, and do not become more."""
    begun = len(model.calls)
    await asyncio.sleep(0.1)
    assert len(model.calls) == begun
    return begun


@pytest.mark.parametrize("by", ["cancel", "timeout"])
async def test_cancelling_a_batch_cancels_the_calls(by: str):
    model = Model(seconds=600)
    chain = chain_of(model, count=12, method="map_reduce", max_concurrency=5)
    before = asyncio.all_tasks()
    task = asyncio.ensure_future(chain.abatch([QUESTION, "Another?"], {"max_concurrency": 5}))
    await started(model, 5)
    if by == "cancel":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.01)
    assert model.running == 0
    assert model.cut_off == 5
    assert asyncio.all_tasks() == before
    assert await settled(model) == 5


async def test_a_stream_that_is_closed_before_the_model_was_asked_asks_nothing():
    model = Model()
    async with aclosing(chain_of(model).astream(QUESTION)) as pieces:  # type: ignore[type-var]
        await anext(pieces)
        await anext(pieces)
    assert model.calls == []


async def test_cancelling_ends_the_runs_of_a_trace(collector):
    model = Model(seconds=600)
    task = asyncio.ensure_future(
        chain_of(model, count=3, method="map_reduce").ainvoke(QUESTION, {"callbacks": [collector]})
    )
    await started(model, 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (root,) = collector.traced_runs
    assert root.error is not None
    assert [one.name for one in root.child_runs].count("map") == 3
