"""The working context in the store of a workflow context, without an agent around it."""

from __future__ import annotations

import asyncio
import copy
import random
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.workflow import Context

from oprag.errors import DataError
from oprag.llama_index import create_search_tool, working_context_of
from tests.adapters.llama_index.agents import (
    AsyncNumberedRetriever,
    NumberedRetriever,
    ScriptedAgentLLM,
    agent_warnings,
)

pytestmark = agent_warnings


def new_context() -> Context:
    return Context(FunctionAgent(llm=ScriptedAgentLLM(turns=[])))


async def found(ctx: Any, query: str, tool: Any = None) -> str:
    output = await (tool or create_search_tool(NumberedRetriever())).acall(query=query, ctx=ctx)
    content: str = output.content
    return content


class SlowStore:
    """A store that takes its time, as one in a database."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def get(self, path: str, default: Any = ...) -> Any:
        await asyncio.sleep(random.Random(path).random() / 200)
        return copy.deepcopy(self.values.get(path, default))

    async def set(self, path: str, value: Any) -> None:
        await asyncio.sleep(0.001)
        self.values[path] = copy.deepcopy(value)


async def test_a_store_that_takes_its_time_loses_no_search():
    ctx = SimpleNamespace(store=SlowStore())
    tool = create_search_tool(AsyncNumberedRetriever())
    texts = await asyncio.gather(*(found(ctx, f"{number} 99 0.00{number}s", tool) for number in range(8)))
    assert "".join(texts).count("Text 99 of book.") == 1
    working = await working_context_of(ctx)
    assert len(working) == 9
    assert len(working.searches) == 8


async def test_a_search_that_is_cancelled_leaves_the_state_whole():
    ctx = SimpleNamespace(store=SlowStore())
    tool = create_search_tool(AsyncNumberedRetriever())
    assert await found(ctx, "1", tool) == "[1] book\nText 1 of book."
    for wait in range(0, 12, 2):
        task = asyncio.create_task(found(ctx, f"{wait + 10}", tool))
        await asyncio.sleep(wait / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    gathered = len(await working_context_of(ctx))
    assert await found(ctx, "1 50", tool) == f"[1] (already shown)\n\n[{gathered + 1}] book\nText 50 of book."
    # Without the steps of an agent, what was shown once counts as seen.
    assert await found(ctx, "1 50", tool) == f"[1], [{gathered + 1}] (already shown)"


async def test_a_result_that_never_arrived_is_shown_again():
    ctx = new_context()
    tool = create_search_tool(NumberedRetriever())
    await ctx.store.set("num_iterations", 1)
    await ctx.store.set("scratchpad", [ChatMessage(role="assistant", content="")])
    assert await found(ctx, "3", tool) == "[1] book\nText 3 of book."
    # Of the same step: the messages of parallel calls arrive together.
    assert await found(ctx, "3 4", tool) == "[1] (already shown)\n\n[2] book\nText 4 of book."
    arrived = ChatMessage(role="tool", content="[1] (already shown)\n\n[2] book\nText 4 of book.")
    await ctx.store.set("num_iterations", 2)
    await ctx.store.set("scratchpad", [ChatMessage(role="assistant", content=""), arrived])
    assert await found(ctx, "3 4", tool) == "[1] book\nText 3 of book.\n\n[2] (already shown)"


async def test_what_is_no_state_is_refused_and_left_as_it_is():
    ctx = new_context()
    await ctx.store.set("working_context", {"mine": 1})
    with pytest.raises(DataError, match="not a saved working context"):
        await found(ctx, "3")
    with pytest.raises(DataError, match="not a saved working context"):
        await working_context_of(ctx)
    assert await ctx.store.get("working_context") == {"mine": 1}


def test_one_context_can_be_used_in_several_event_loops():
    ctx = SimpleNamespace(store=SlowStore())
    tool = create_search_tool(AsyncNumberedRetriever())

    async def several(first: int) -> None:
        await asyncio.gather(*(found(ctx, f"{number}", tool) for number in range(first, first + 4)))

    asyncio.run(several(0))
    asyncio.run(several(4))
    assert len(asyncio.run(working_context_of(ctx))) == 8
