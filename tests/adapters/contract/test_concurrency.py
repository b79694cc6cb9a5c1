"""How many calls run at the same time, observed in the model itself, and what is left when a question ends early."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from oprag.errors import ModelError
from tests.adapters.contract.frameworks import (
    Framework,
    both_streams,
    each_framework,
    each_kind_of_model,
    each_way,
)
from tests.adapters.scripted import QUESTION, by_step
from tests.meeting import Meeting, others, until


@each_kind_of_model
@each_way
@pytest.mark.parametrize(("options", "most"), [({}, 8), ({"max_concurrency": 3}, 3), ({"max_concurrency": 1}, 1)])
async def test_so_many_calls_at_the_same_time_and_no_more(framework: Framework, way: str, options: Any, most: int):
    model = framework.model(meeting=Meeting(most))
    await framework.run(framework.over(model, "map_reduce", 14, **options), way)
    assert model.peak == most
    assert len(model.calls) == 15


@each_framework
@each_way
async def test_the_sequence_is_that_of_the_passages_whatever_takes_longest(framework: Framework, way: str):
    def slow_first(prompt: str) -> str:
        if prompt.startswith("MAP"):
            number = int(prompt.split("Part ")[1].split(maxsplit=1)[0])
            time.sleep(0.03 * (3 - number) if number < 3 else 0)
            return f"Says {number}."
        return prompt

    text = await framework.run(framework.over(framework.model(reply=slow_first), "map_reduce", 6), way)
    places = [text.index(f"Says {number}.") for number in range(6)]
    assert places == sorted(places)


@each_framework
async def test_a_stream_that_is_put_aside_holds_up_no_other_question(framework: Framework):
    """Each question has a limit of its own."""
    answerer = framework.over(framework.model(), max_concurrency=1)
    first = framework.pieces(answerer, "stream", QUESTION)
    begun = [await anext(first)]
    assert await framework.run(answerer, "once", "And then?") == "An answer."
    assert "".join(begun + [piece async for piece in first]) == "An answer."


# A question that ends early leaves nothing of it running


@each_framework
@pytest.mark.parametrize("method", ["stuff", "map_reduce", "step_down", "self_route"])
@pytest.mark.parametrize("asking", ["async_once", "aanswer", "aanswer_with", "astream"])
async def test_cancelling_cancels_the_calls(framework: Framework, asking: str, method: str):
    model = framework.model(reply=by_step, seconds=600)
    answerer = framework.over(model, method, 6, max_concurrency=5)
    if asking in {"aanswer", "aanswer_with"}:
        work = getattr(answerer, asking)(QUESTION, *([[method]] if asking == "aanswer_with" else []))
    else:
        work = framework.run(answerer, asking)
    task = asyncio.ensure_future(work)
    begun = 5 if method == "map_reduce" else 1
    await until(lambda: len(model.calls) == begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.running, model.cut_off) == (0, begun)
    assert await others() == set()
    assert len(model.calls) == begun


@each_framework
@pytest.mark.parametrize("method", ["map_reduce", "map_rerank", "step_down"])
async def test_a_failing_call_cancels_those_beside_it(framework: Framework, method: str):
    first, failing = (1, 2) if method == "step_down" else (0, 4)

    def fails(number: int) -> Exception | None:
        model.seconds = 600 if number >= first else 0
        return ConnectionError("away") if number == failing else None

    model = framework.model(reply=by_step, error=fails)
    answerer = framework.over(model, method, 12, max_concurrency=5)
    with pytest.raises(ModelError, match=r"\(2 of 2\)" if method == "step_down" else r"\(5 of 12\)"):
        await asyncio.wait_for(framework.run(answerer, "async_once"), 60)
    assert (model.running, model.cut_off) == (0, failing - first)
    assert await others() == set()
    assert len(model.calls) == failing + 1


@each_framework
async def test_a_cancelled_question_leaves_another_one_alone(framework: Framework):
    model = framework.model(meeting=Meeting())
    answerer = framework.over(model, "map_reduce", 3)
    cancelled, kept = (asyncio.ensure_future(answerer.aanswer(question)) for question in ("One?", "Two?"))
    await until(lambda: len(model.calls) == 6)
    cancelled.cancel()
    await until(lambda: model.cut_off == 3)
    model.meeting.open()
    assert (await kept).text == "An answer."
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert model.cut_off == 3


@each_framework
async def test_cancelling_in_the_middle_of_a_stream(framework: Framework):
    model = framework.model(reply=lambda prompt: "one two three four", seconds=0.02)
    answerer = framework.over(model)

    async def read() -> None:
        async for piece in framework.pieces(answerer, "astream", QUESTION):
            if piece:
                model.seconds = 600

    task = asyncio.ensure_future(read())
    await until(lambda: model.seconds == 600)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.running, model.cut_off) == (0, 1)
    assert await others() == set()


@each_framework
@both_streams
async def test_a_stream_that_is_left_ends_the_call(framework: Framework, way: str):
    model = framework.model(reply=lambda prompt: "one two three four")
    async for piece in framework.pieces(framework.over(model), way, QUESTION):
        if piece:
            break
    await until(lambda: model.running == 0)
    assert model.cut_off == 1
    assert await others() == set()
