"""How many calls run at the same time, observed in the model itself, and what is left when a question ends early."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from oprag.errors import ModelError
from tests.adapters.contract.frameworks import (
    Framework,
    both_sides,
    both_streams,
    each_framework,
    each_kind_of_model,
    each_way,
)
from tests.adapters.scripted import QUESTION, by_step
from tests.meeting import Meeting, others, timed_out_once, until

seen_by: ContextVar[str] = ContextVar("seen_by", default="nobody")


@each_kind_of_model
@each_way
@pytest.mark.parametrize(("options", "most"), [({}, 8), ({"max_concurrency": 3}, 3), ({"max_concurrency": 1}, 1)])
async def test_so_many_calls_at_the_same_time_and_no_more(framework: Framework, way: str, options: Any, most: int):
    model = framework.model(meeting=Meeting(most))
    await framework.run(framework.over(model, "map_reduce", 14, **options), way)
    assert model.peak == most
    assert len(model.calls) == 15


@each_framework
@both_sides
async def test_inner_methods_share_the_limit(framework: Framework, way: str):
    def meets(prompt: str) -> str:
        if prompt.startswith("MAP"):
            model.meeting = meeting
        return by_step(prompt)

    model, meeting = framework.model(reply=meets), Meeting(4)
    answerer = framework.over(model, "step_down", 6, inner_method="map_reduce", max_concurrency=4)
    await framework.run(answerer, way)
    assert model.peak == 4
    assert len(model.calls) == 2 + 2 * 7


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
@each_way
async def test_context_variables_reach_every_call(framework: Framework, way: str):
    heard: list[str] = []

    def listening(prompt: str) -> str:
        heard.append(seen_by.get())
        return "An answer."

    model = framework.model(reply=listening, seconds=0.01)
    token = seen_by.set(way)
    try:
        await framework.run(framework.over(model, "map_reduce", 9), way)
    finally:
        seen_by.reset(token)
    assert heard == [way] * 10


@each_framework
async def test_context_variables_of_several_questions_are_kept_apart(framework: Framework):
    heard: dict[str, set[str]] = {}

    def listening(prompt: str) -> str:
        heard.setdefault(prompt.rsplit("Q: ", 1)[1], set()).add(seen_by.get())
        return "An answer."

    answerer = framework.over(framework.model(reply=listening, seconds=0.01), "map_reduce")

    async def ask(name: str) -> None:
        seen_by.set(name)
        await answerer.aanswer(f"{name}?")
        await asyncio.to_thread(answerer.answer, f"{name}?")

    await asyncio.gather(*(asyncio.create_task(ask(name)) for name in "abcd"))
    assert heard == {f"{name}?": {name} for name in "abcd"}


@each_framework
async def test_the_event_loop_is_not_blocked(framework: Framework):
    """Eight calls wait for something that another task does."""
    model = framework.model(meeting=Meeting())

    async def let_them_go_on() -> None:
        await until(lambda: model.running == 8)
        model.meeting.open()

    beside = asyncio.create_task(let_them_go_on())
    await framework.run(framework.over(model, "map_reduce", 16), "async_once")
    await beside
    assert len(model.calls) == 17


@each_framework
async def test_many_threads_and_loops_at_once(framework: Framework):
    answerer = framework.over(framework.model(reply=by_step, seconds=0.005), "map_reduce", 3)
    questions = [f"What of {number}?" for number in range(8)]
    alone = [answerer.answer(question).text for question in questions]
    assert len(set(alone)) == 8

    def in_a_loop(question: str) -> Any:
        return asyncio.run(answerer.aanswer(question))

    in_loops = [asyncio.to_thread(in_a_loop, question) for question in questions[:3]]
    in_threads = [asyncio.to_thread(answerer.answer, question) for question in questions[3:6]]
    here = [answerer.aanswer(question) for question in questions[6:]]
    together = await asyncio.gather(*in_loops, *in_threads, *here)
    assert [answer.text for answer in together] == alone
    assert threading.current_thread() is threading.main_thread()


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
@pytest.mark.parametrize("way", ["async_once", "aanswer"])
async def test_a_timeout_cancels_the_calls(framework: Framework, way: str):
    model = framework.model(seconds=600)
    answerer = framework.over(model, "map_rerank")
    work = answerer.aanswer(QUESTION) if way == "aanswer" else framework.run(answerer, way)
    with pytest.raises(TimeoutError):
        await timed_out_once(lambda: len(model.calls) == 4, work)
    assert (model.running, model.cut_off) == (0, 4)
    assert await others() == set()


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
@pytest.mark.parametrize("way", ["once", "stream"])
async def test_a_failing_call_stops_those_that_wait(framework: Framework, way: str):
    model = framework.model(error=lambda number: ConnectionError("away") if number == 0 else None, seconds=0.1)
    with pytest.raises(ModelError):
        await framework.run(framework.over(model, "map_reduce", 30, max_concurrency=6), way)
    # Seven at most on a machine that is free; a thread that has to wait for it learns of the failure later.
    assert len(model.calls) < 30
    assert model.running == 0


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


@each_framework
@pytest.mark.parametrize("method", ["stuff", "map_reduce", "refine"])
def test_an_interrupt_ends_the_question(framework: Framework, method: str):
    def interrupts(number: int) -> BaseException | None:
        return KeyboardInterrupt() if number == 1 or method == "stuff" else None

    model = framework.model(error=interrupts, seconds=0.2)
    with pytest.raises(KeyboardInterrupt):
        framework.over(model, method, 20, max_concurrency=3).answer(QUESTION)
    # An interrupt waits for nobody: what two other threads have taken up by now is asked, and no call after that.
    begun = len(model.calls)
    time.sleep(0.2)
    asyncio.run(until(lambda: model.running == 0))
    assert len(model.calls) <= min(begun + 2, 19)


@each_framework
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_never_skipped(framework: Framework, error: type[BaseException]):
    model = framework.model(error=lambda number: error())
    with pytest.raises(error):
        framework.over(model, "map_reduce", 3, on_error="skip").answer(QUESTION)
