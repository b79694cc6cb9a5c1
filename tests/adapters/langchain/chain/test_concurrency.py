"""How many calls run at the same time, observed in the model itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from oprag import ModelError
from oprag.langchain import OrderPreservingChain
from tests.adapters.langchain.chain.conftest import Model, chain_of, every_way, full_chain, run
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import QUESTION, both_sides, by_step
from tests.meeting import Meeting, until

seen_by: ContextVar[str] = ContextVar("seen_by", default="nobody")


@every_way
@pytest.mark.parametrize(
    ("own", "config", "most"),
    [
        ({}, {}, 8),
        ({}, {"max_concurrency": 12}, 12),
        ({}, {"max_concurrency": 3}, 3),
        ({}, {"max_concurrency": 1}, 1),
        ({}, {"max_concurrency": None}, 8),
        ({"max_concurrency": 2}, {}, 2),
        ({"max_concurrency": 2}, {"max_concurrency": 5}, 5),
        ({"max_concurrency": 5}, {"max_concurrency": 2}, 2),
    ],
    ids=str,
)
async def test_the_most_calls_of_a_question(way: str, own: dict[str, Any], config: Any, most: int):
    model = Model(meeting=Meeting(most))
    await run(chain_of(model, count=14, method="map_reduce", **own), way, QUESTION, config)
    assert model.peak == most
    assert len(model.calls) == 15


@both_sides
@pytest.mark.parametrize("most", [1, 3, 20])
async def test_a_batch_has_one_limit_for_all_questions(is_async: bool, most: int):
    # Each question makes four calls at the same time.
    model = Model(meeting=Meeting(min(most, 4)))
    chain = chain_of(model, count=4, method="map_reduce")
    inputs = [f"{number}?" for number in range(5)]
    config: Any = {"max_concurrency": most}
    results = await chain.abatch(inputs, config) if is_async else chain.batch(inputs, config)
    assert [result["input"] for result in results] == inputs
    assert min(most, 4) <= model.peak <= most
    assert len(model.calls) == 25


@both_sides
@pytest.mark.parametrize("as_completed", [False, True], ids=["batch", "as completed"])
@pytest.mark.parametrize(
    ("own", "config", "most"),
    [
        (1, None, 1),
        (3, None, 3),
        (1, {"max_concurrency": None}, 1),
        (1, {"max_concurrency": 3}, 3),
        (3, {"max_concurrency": 1}, 1),
    ],
    ids=str,
)
async def test_the_limit_of_a_chain_counts_the_calls_of_a_whole_batch(
    is_async: bool, as_completed: bool, own: int, config: Any, most: int
):
    model = Model(meeting=Meeting(most))
    chain = chain_of(model, count=1, max_concurrency=own)
    await all_of(chain, [f"{number}?" for number in range(6)], config, is_async=is_async, as_completed=as_completed)
    assert model.peak == most
    assert len(model.calls) == 6


async def all_of(
    chain: Any, inputs: list[Any], config: Any, *, is_async: bool, as_completed: bool = False
) -> list[Any]:
    """The results of a batch, in the sequence of the inputs."""
    if not as_completed:
        results: list[Any] = await chain.abatch(inputs, config) if is_async else chain.batch(inputs, config)
        return results
    if is_async:
        pairs = [pair async for pair in chain.abatch_as_completed(inputs, config)]
    else:
        pairs = list(chain.batch_as_completed(inputs, config))
    return [result for _, result in sorted(pairs, key=lambda pair: int(pair[0]))]


@both_sides
@pytest.mark.parametrize("method", ["step_down", "reciprocal"])
async def test_inner_questions_of_a_batch_share_a_limit_of_one(is_async: bool, method: str):
    model = Model(reply=by_step)
    chain = full_chain(model, method, inner_method="map_reduce", variants=2, count=3, max_concurrency=1)
    batch = all_of(chain, ["One?", "Two?"], None, is_async=is_async)
    assert len(await asyncio.wait_for(batch, 60)) == 2
    assert model.peak == 1


@both_sides
async def test_a_batch_with_a_config_for_each_question_has_one_limit(is_async: bool):
    model = Model(meeting=Meeting(3))
    chain = chain_of(model, count=4, method="map_reduce")
    configs: Any = [{"max_concurrency": 3, "tags": [str(number)]} for number in range(4)]
    inputs = [f"{number}?" for number in range(4)]
    _ = await chain.abatch(inputs, configs) if is_async else chain.batch(inputs, configs)
    assert model.peak == 3


@both_sides
async def test_a_batch_as_completed_has_one_limit(is_async: bool):
    model = Model(meeting=Meeting(3))
    chain = chain_of(model, count=4, method="map_reduce")
    config: Any = {"max_concurrency": 3}
    inputs: Any = [f"{number}?" for number in range(4)]
    if is_async:
        done = [number async for number, _ in chain.abatch_as_completed(inputs, config)]
    else:
        done = [number for number, _ in chain.batch_as_completed(inputs, config)]
    assert sorted(done) == [0, 1, 2, 3]
    assert model.peak == 3


@both_sides
@pytest.mark.parametrize("kind", ["sequence", "map", "config", "retry"])
async def test_a_batch_of_a_chain_around_it_has_one_limit(is_async: bool, kind: str):
    model = Model(meeting=Meeting(3))
    chain = chain_of(model, count=4, method="map_reduce")
    around: Any = {
        "sequence": lambda: RunnablePassthrough() | chain,
        "map": chain.map,
        "config": lambda: chain.with_config(tags=["t"]),
        "retry": chain.with_retry,
    }[kind]()
    inputs: Any = [f"{number}?" for number in range(4)]
    config: Any = {"max_concurrency": 3}
    if kind == "map":
        _ = await around.ainvoke(inputs, config) if is_async else around.invoke(inputs, config)
    else:
        _ = await around.abatch(inputs, config) if is_async else around.batch(inputs, config)
    assert model.peak == 3
    assert len(model.calls) == 20


@both_sides
async def test_batches_one_after_the_other_have_limits_of_their_own(is_async: bool):
    model = Model()
    chain = chain_of(model, count=4, method="map_reduce")
    peaks = []
    for most in (1, 4):
        model.meeting = Meeting(most)
        config: Any = {"max_concurrency": most}
        _ = await chain.abatch([QUESTION], config) if is_async else chain.batch([QUESTION], config)
        peaks.append(model.peak)
    model.meeting = Meeting(8)
    await run(chain_of(model, count=10, method="map_reduce"), "ainvoke" if is_async else "invoke", QUESTION)
    assert [*peaks, model.peak] == [1, 4, 8]


@both_sides
async def test_inner_questions_share_the_limit(is_async: bool):
    def meets(prompt: str) -> str:
        if prompt.startswith("MAP"):
            model.meeting = meeting
        return by_step(prompt)

    model, meeting = Model(reply=meets), Meeting(4)
    chain = full_chain(model, "step_down", inner_method="map_reduce", variants=2, count=6, max_concurrency=4)
    await run(chain, "ainvoke" if is_async else "invoke", QUESTION)
    assert model.peak == 4


@every_way
async def test_the_sequence_is_that_of_the_passages_whatever_takes_longest(way: str):
    """The first passage takes longest."""

    def slow_first(prompt: str) -> str:
        if prompt.startswith("MAP"):
            number = int(prompt.split("Part ")[1].split(maxsplit=1)[0])
            time.sleep(0.03 * (3 - number) if number < 3 else 0)
            return f"Says {number}."
        return prompt

    model = Model(reply=slow_first)
    result = await run(chain_of(model, count=6, method="map_reduce"), way, QUESTION)
    assert [f"Says {number}." in result["answer"] for number in range(6)] == [True] * 6
    places = [result["answer"].index(f"Says {number}.") for number in range(6)]
    assert places == sorted(places)


@every_way
async def test_context_variables_reach_every_call(way: str):
    heard: list[str] = []

    def listening(prompt: str) -> str:
        heard.append(seen_by.get())
        return "An answer."

    token = seen_by.set(way)
    try:
        await run(chain_of(Model(reply=listening, seconds=0.01), count=9, method="map_reduce"), way, QUESTION)
    finally:
        seen_by.reset(token)
    assert heard == [way] * 10


async def test_context_variables_of_several_questions_are_kept_apart():
    heard: dict[str, set[str]] = {}

    def listening(prompt: str) -> str:
        heard.setdefault(prompt.rsplit("Q: ", 1)[1], set()).add(seen_by.get())
        return "An answer."

    chain = chain_of(Model(reply=listening, seconds=0.01), count=4, method="map_reduce")

    async def ask(name: str) -> None:
        seen_by.set(name)
        await chain.ainvoke(f"{name}?")
        await asyncio.to_thread(chain.invoke, f"{name}?")

    await asyncio.gather(*(asyncio.create_task(ask(name)) for name in "abcd"))
    assert heard == {f"{name}?": {name} for name in "abcd"}


async def test_the_event_loop_is_not_blocked():
    """Eight calls wait for what another task does."""
    model = Model(meeting=Meeting())

    async def let_them_go_on() -> None:
        await until(lambda: model.running == 8)
        model.meeting.open()

    beside = asyncio.create_task(let_them_go_on())
    await chain_of(model, count=16, method="map_reduce").ainvoke(QUESTION)
    await beside
    assert len(model.calls) == 17


async def test_a_chain_is_used_from_many_threads_and_loops_at_once():
    model = Model(reply=by_step, seconds=0.005)
    chain = chain_of(model, count=3, method="map_reduce")
    expected = {f"{number}?": chain.invoke(f"{number}?")["answer"] for number in range(8)}
    results: dict[str, str] = {}

    def ask(question: str, *, is_async: bool) -> None:
        result = asyncio.run(chain.ainvoke(question)) if is_async else chain.invoke(question)
        results[question] = result["answer"]

    threads = [
        threading.Thread(target=ask, args=(f"{number}?",), kwargs={"is_async": bool(number % 2)}) for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert results == expected


NESTED = """
from langchain_core.runnables import RunnableLambda
from tests.adapters.langchain.chain.conftest import Model, chain_of
from tests.adapters.langchain.conftest import parts

inner = chain_of(Model(), count=2, method="map_reduce", max_concurrency=1)

def search(given):
    inner.invoke(given["input"])
    return parts(2)

retrieving = chain_of(Model(), retriever=RunnableLambda(search))
answering = chain_of(RunnableLambda(lambda prompt: inner.invoke(prompt.to_string())["answer"]))
for chain in (retrieving, answering):
    for limited in (chain, chain.model_copy(update={"max_concurrency": 1})):
        config = {"max_concurrency": 1} if limited is chain else None
        print([result["answer"] for result in limited.batch(["One?", "Two?"], config)])
"""


@pytest.mark.process
def test_a_chain_inside_a_chain_does_not_wait_for_itself():
    """As its retriever or its model, in a batch with a limit of one; in a process that can be ended if it does."""
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", NESTED], cwd=root, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.splitlines() == ["['An answer.', 'An answer.']"] * 4, done.stderr


async def test_a_chain_inside_a_chain_does_not_wait_for_itself_async():
    inner = chain_of(Model(), count=2, method="map_reduce")

    async def search(given: Any) -> list[Document]:
        await inner.ainvoke(given["input"])
        return parts(2)

    for own, config in ((8, {"max_concurrency": 1}), (1, None)):
        outer = OrderPreservingChain(llm=Model(), retriever=RunnableLambda(search), max_concurrency=own)
        results = await asyncio.wait_for(all_of(outer, [QUESTION, "Another?"], config, is_async=True), 60)
        assert [result["answer"] for result in results] == ["An answer."] * 2


def test_a_stream_that_is_put_aside_does_not_stop_other_questions():
    chain = chain_of(Model(), max_concurrency=1)
    first = chain.stream(QUESTION)
    for _ in range(3):
        next(first)
    assert chain.invoke("Another?")["answer"] == "An answer."
    assert "".join(piece.get("answer", "") for piece in first) == " answer."


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
def test_a_failed_call_stops_those_that_wait(way: str):
    """Six run, and the first fails at once."""

    def fails(number: int) -> Exception | None:
        return ConnectionError("away") if number == 0 else None

    model = Model(error=fails, seconds=0.1)
    chain = chain_of(model, count=30, method="map_reduce", max_concurrency=6)
    with pytest.raises(ModelError):
        asyncio.run(run(chain, way, QUESTION))
    # Seven at most on a machine that is free; a thread that has to wait for it learns of the failure later.
    assert len(model.calls) < 30
    assert model.running == 0


@pytest.mark.parametrize("method", ["stuff", "map_reduce", "refine"])
def test_an_interrupt_ends_the_question(method: str):
    model = Model(error=lambda number: KeyboardInterrupt() if number == 1 or method == "stuff" else None, seconds=0.2)
    with pytest.raises(KeyboardInterrupt):
        chain_of(model, count=20, method=method, max_concurrency=3).invoke(QUESTION)
    begun = len(model.calls)
    time.sleep(0.2)
    assert len(model.calls) == begun < 20
    assert model.running == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_never_skipped(error: type[BaseException]):
    chain = chain_of(Model(error=lambda number: error()), count=3, method="map_reduce", on_error="skip")
    with pytest.raises(error):
        chain.invoke(QUESTION)
