"""How many calls are made at the same time, and what is left when a question is given up."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from oprag import ModelError
from tests.adapters.llama_index.engine.conftest import Model, both_models, engine_of, every_way, full_engine, parts, run
from tests.adapters.scripted import QUESTION, both_sides, by_step
from tests.meeting import Meeting, timed_out_once, until


@every_way
@pytest.mark.parametrize("most", [1, 3, 8])
async def test_so_many_calls_at_the_same_time_and_no_more(way: str, most: int):
    model = Model(meeting=Meeting(most))
    await run(engine_of(model, 9, method="map_reduce", max_concurrency=most), way)
    assert model.peak == most
    assert len(model.calls) == 10


@both_sides
@both_models
async def test_the_default_is_eight(is_async: bool, chats: bool):
    model = Model(meeting=Meeting(8), chats=chats)
    await run(engine_of(model, 12, method="map_rerank"), "aquery" if is_async else "query")
    assert model.peak == 8


@both_sides
async def test_inner_methods_share_the_limit(is_async: bool):
    def meets(prompt: str) -> str:
        if prompt.startswith("MAP"):
            model.meeting = meeting
        return by_step(prompt)

    model, meeting = Model(reply=meets), Meeting(3)
    engine = full_engine(model, "step_down", inner_method="map_reduce", max_concurrency=3)
    await run(engine, "aquery" if is_async else "query")
    assert model.peak == 3
    assert len(model.calls) == 2 + 2 * 5


async def test_async_calls_take_no_thread():
    model = Model(seconds=0.01)
    engine = engine_of(model, 8, method="map_reduce")
    before = threading.active_count()
    await engine.aquery(QUESTION)
    assert threading.active_count() <= before


async def test_questions_at_the_same_time_do_not_disturb_each_other():
    model = Model(reply=by_step, seconds=0.001)
    engine = full_engine(model, "step_down")
    questions = [f"What of {number}?" for number in range(6)]
    together = await asyncio.gather(*map(engine.aquery, questions))
    alone = [str(engine.query(question)) for question in questions]
    assert list(map(str, together)) == alone
    assert len(set(alone)) == 6


def test_questions_in_threads_do_not_disturb_each_other():
    model = Model(reply=by_step, seconds=0.001)
    engine = full_engine(model, "map_reduce")
    questions = [f"What of {number}?" for number in range(6)]
    answers: dict[str, str] = {}
    threads = [
        threading.Thread(target=lambda question=question: answers.update({question: str(engine.query(question))}))
        for question in questions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {question: str(engine.query(question)) for question in questions}


async def others() -> set[asyncio.Task[Any]]:
    """The tasks that run beside this one, once those had a moment that are about to end."""
    for _ in range(10):
        await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


@pytest.mark.parametrize("name", ["aquery", "aanswer", "acompare"])
@pytest.mark.parametrize("method", ["stuff", "map_reduce", "step_down", "self_route"])
async def test_cancelling_a_question_cancels_its_calls(name: str, method: str):
    model = Model(reply=by_step, seconds=600)
    engine = full_engine(model, method)
    given = ([method],) if name == "acompare" else ()
    task = asyncio.ensure_future(getattr(engine, name)(QUESTION, *given))
    begun = 4 if method == "map_reduce" else 1
    await until(lambda: len(model.calls) == begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.running, model.cut_off) == (0, begun)
    assert await others() == set()


@pytest.mark.parametrize("name", ["aquery", "aanswer"])
async def test_a_timeout_cancels_the_calls(name: str):
    model = Model(seconds=600)
    with pytest.raises(asyncio.TimeoutError):
        await timed_out_once(
            lambda: len(model.calls) == 4, getattr(engine_of(model, method="map_rerank"), name)(QUESTION)
        )
    assert (model.running, model.cut_off) == (0, 4)
    assert await others() == set()


class Slow(BaseRetriever):
    """Takes its time, and knows when it is cancelled."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return parts()

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.begun += 1
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return parts()


async def test_cancelling_a_question_cancels_its_retrieval():
    retriever = Slow()
    task = asyncio.ensure_future(engine_of(Model(), retriever=retriever).aquery(QUESTION))
    await until(lambda: retriever.begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert retriever.cancelled == 1
    assert await others() == set()


@pytest.mark.parametrize("method", ["map_reduce", "map_rerank", "step_down"])
async def test_a_failing_call_cancels_those_beside_it(method: str):
    at = 2 if method == "step_down" else 1
    model = Model(reply=by_step, seconds=0.2, error=lambda number: TimeoutError() if number == at else None)
    with pytest.raises(ModelError):
        await full_engine(model, method).aquery(QUESTION)
    assert model.running == 0
    assert await others() == set()


@pytest.mark.parametrize("streaming", [False, True])
async def test_cancelling_in_the_middle_of_a_stream(streaming: bool):
    model = Model(reply=lambda prompt: "one two three four", seconds=0.02)
    engine = engine_of(model, streaming=True)

    async def read() -> None:
        response: Any = await engine.aquery(QUESTION)
        async for _ in response.response_gen:
            model.seconds = 600

    task = asyncio.ensure_future(read())
    await until(lambda: model.seconds == 600)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.running, model.cut_off) == (0, 1)
    assert await others() == set()


async def test_a_stream_that_is_closed_early_closes_the_call():
    model = Model(reply=lambda prompt: "one two three four")
    response: Any = await engine_of(model, streaming=True).aquery(QUESTION)
    async for _ in response.response_gen:
        break
    await response.response_gen.aclose()
    assert await others() == set()
    assert (model.running, model.cut_off) == (0, 1)


def test_a_stream_that_is_closed_early_closes_the_call_sync():
    model = Model(reply=lambda prompt: "one two three four")
    response: Any = engine_of(model, streaming=True).query(QUESTION)
    next(response.response_gen)
    response.response_gen.close()
    assert (model.running, model.cut_off) == (0, 1)


def test_a_stream_that_nobody_reads_ends_with_its_response():
    model = Model(reply=lambda prompt: "one two three four")
    response: Any = engine_of(model, streaming=True).query(QUESTION)
    assert response.source_nodes
    assert model.running == 0  # it is asked, and not waited for
    pieces = response.response_gen
    assert next(pieces)
    assert model.running == 1
    del response, pieces
    gc.collect()
    assert (model.running, model.cut_off) == (0, 1)


async def test_an_async_stream_that_nobody_reads_ends_with_its_response():
    model = Model(reply=lambda prompt: "one two three four")
    response: Any = await engine_of(model, streaming=True).aquery(QUESTION)
    assert response.source_nodes
    assert model.running == 0
    pieces = response.async_response_gen()
    assert await anext(pieces)
    assert model.running == 1
    del response, pieces
    gc.collect()
    await until(lambda: model.running == 0)  # the loop closes one generator after the other
    assert await others() == set()
    assert (model.running, model.cut_off) == (0, 1)


async def test_an_open_stream_holds_up_no_other_question():
    """Each question has a limit of its own."""
    model = Model()
    engine = engine_of(model, streaming=True, max_concurrency=1)
    first, second = engine.query(QUESTION), engine.query("And then?")
    assert str(second) == str(first) == "An answer."
