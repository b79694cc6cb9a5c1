"""A batch or a stream of a chain that ends early leaves nothing running."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, closing
from typing import Any

import pytest

from oprag import ModelError
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


async def test_a_stream_that_is_closed_ends_the_models_stream():
    model = Model(reply=lambda prompt: "One two three four five.")
    before = asyncio.all_tasks()
    async with aclosing(chain_of(model).astream(QUESTION)) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            if "answer" in piece:
                break
        assert model.running == 1
    # Once it is closed, and not when somebody collects the garbage.
    assert (model.running, model.cut_off) == (0, 1)
    assert asyncio.all_tasks() == before


def test_a_sync_stream_that_is_closed_ends_the_models_stream():
    model = Model(reply=lambda prompt: "One two three four five.")
    with closing(chain_of(model).stream(QUESTION)) as pieces:  # type: ignore[type-var]
        for piece in pieces:
            if "answer" in piece:
                break
        assert model.running == 1
    assert (model.running, model.cut_off) == (0, 1)


async def test_a_stream_that_is_closed_before_the_model_was_asked_asks_nothing():
    model = Model()
    async with aclosing(chain_of(model).astream(QUESTION)) as pieces:  # type: ignore[type-var]
        await anext(pieces)
        await anext(pieces)
    assert model.calls == []


@pytest.mark.parametrize("most", [None, 1, 2, 5, 50])
async def test_a_failing_question_of_a_batch_cancels_the_others(most: int | None):
    """The first call of all fails; questions that were not begun must not be begun any more either."""
    model = Model(seconds=600, error=lambda number: ConnectionError("away") if number == 0 else None)
    chain = chain_of(model, count=3, method="map_reduce")
    before = asyncio.all_tasks()
    with pytest.raises(ModelError):
        await asyncio.wait_for(chain.abatch([f"{number}?" for number in range(8)], {"max_concurrency": most}), 60)
    assert model.running == 0
    assert asyncio.all_tasks() == before
    begun = len(model.calls)
    assert await settled(model) == begun


async def test_a_failing_question_of_a_batch_cancels_the_others_wherever_it_stands():
    def fails(number: int) -> Exception | None:
        return ConnectionError("away") if number == 6 else None

    model = Model(seconds=0.02, error=fails)
    chain = chain_of(model, count=1)
    before = asyncio.all_tasks()
    with pytest.raises(ModelError):
        await chain.abatch([f"{number}?" for number in range(20)], {"max_concurrency": 2})
    assert model.running == 0
    assert asyncio.all_tasks() == before
    assert await settled(model) <= 8


async def test_a_failing_question_of_a_batch_as_completed_cancels_the_others():
    model = Model(seconds=600, error=lambda number: ConnectionError("away") if number == 0 else None)
    chain = chain_of(model, count=1)
    before = asyncio.all_tasks()

    async def consume_all() -> None:
        async for _ in chain.abatch_as_completed([f"{number}?" for number in range(4)]):
            pass

    with pytest.raises(ModelError):
        await asyncio.wait_for(consume_all(), 60)
    left = asyncio.all_tasks() - before
    running = model.running
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert (running, left) == (0, set())


async def test_a_batch_as_completed_that_is_closed_cancels_the_rest():
    class FirstIsQuick(Model):
        async def _agenerate(self, messages: Any, *rest: Any, **kwargs: Any) -> Any:
            self.seconds = 0 if "0?" in str(messages[0].content) else 600
            return await super()._agenerate(messages, *rest, **kwargs)

    model = FirstIsQuick()
    before = asyncio.all_tasks()
    answers: Any = chain_of(model, count=1).abatch_as_completed(["0?", "1?", "2?"])
    number, _ = await anext(answers)
    assert number == 0
    await answers.aclose()
    left = asyncio.all_tasks() - before
    running = model.running
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert (running, left) == (0, set())


async def test_a_refused_question_of_a_batch_cancels_the_others():
    from oprag import QueryError

    model = Model(seconds=600)
    chain = chain_of(model, count=2, method="map_reduce")
    before = asyncio.all_tasks()
    with pytest.raises(QueryError):
        await asyncio.wait_for(chain.abatch([QUESTION, "", "Another?"]), 60)
    assert model.running == 0
    assert asyncio.all_tasks() == before
    assert await settled(model) <= 4


async def test_a_batch_that_returns_its_errors_lets_the_others_finish():
    model = Model(seconds=0.05, error=lambda number: ConnectionError("away") if number == 0 else None)
    results: Any = await chain_of(model, count=1).abatch(["a?", "b?", "c?"], return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["ModelError", "dict", "dict"]
    assert model.cut_off == 0


def test_a_failing_sync_batch_leaves_nothing_running():
    model = Model(seconds=0.05, error=lambda number: ConnectionError("away") if number == 0 else None)
    chain = chain_of(model, count=4, method="map_reduce")
    with pytest.raises(ModelError):
        chain.batch([f"{number}?" for number in range(4)], {"max_concurrency": 2})
    assert model.running == 0
    begun = len(model.calls)
    time.sleep(0.15)
    assert len(model.calls) == begun


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
