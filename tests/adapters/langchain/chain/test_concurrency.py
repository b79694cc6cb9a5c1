"""How many calls run at the same time in batches, under a config, and with a chain inside a chain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnablePassthrough

from tests.adapters.langchain.chain.conftest import Model, chain_of
from tests.adapters.scripted import both_sides
from tests.meeting import Meeting


@both_sides
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
@pytest.mark.parametrize("as_completed", [False, True], ids=["batch", "as completed"])
async def test_the_limit_of_a_chain_counts_the_calls_of_a_whole_batch(
    is_async: bool, as_completed: bool, own: int, config: Any, most: int
):
    model = Model(meeting=Meeting(most))
    chain = chain_of(model, count=2, max_concurrency=own, method="map_reduce")
    inputs = [f"{number}?" for number in range(6)]
    if as_completed and is_async:
        numbers = [number async for number, _ in chain.abatch_as_completed(inputs, config)]
    elif as_completed:
        numbers = [number for number, _ in chain.batch_as_completed(inputs, config)]
    else:
        numbers = [*range(len(await all_of(chain, inputs, config, is_async=is_async)))]
    assert sorted(numbers) == [*range(6)]
    assert model.peak == most
    assert len(model.calls) == 18


async def all_of(chain: Any, inputs: list[Any], config: Any, *, is_async: bool) -> list[Any]:
    """The results of a batch, in the sequence of the inputs."""
    results: list[Any] = await chain.abatch(inputs, config) if is_async else chain.batch(inputs, config)
    return results


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
