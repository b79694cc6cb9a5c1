"""The agent that lays out search results before each call of the model."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentInput, AgentWorkflow, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer, Memory
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from pydantic import ValidationError

from oprag import ContextOptions
from oprag.agents.layouts import Layout
from oprag.llama_index import OrderPreservingFunctionAgent, create_search_tool
from tests.adapters.llama_index.agents import (
    AsyncNumberedRetriever,
    NumberedRetriever,
    ScriptedAgentLLM,
    Turn,
    agent_warnings,
    memory_of,
)

pytestmark = agent_warnings

ALL = "Everything that was found so far, in the order of the sources:\n\n"
ELSEWHERE = "(shown in source order in the last search result)"


def agent_with(turns: list[Turn], **options: Any) -> tuple[OrderPreservingFunctionAgent, ScriptedAgentLLM]:
    llm = ScriptedAgentLLM(turns=turns)
    tools = options.pop("tools", None) or [create_search_tool(NumberedRetriever())]
    return OrderPreservingFunctionAgent(llm=llm, tools=tools, **options), llm


async def test_only_what_the_model_reads_changes():
    agent, llm = agent_with([[{"query": "9 3"}], [{"query": "5 3"}], "Done."], layout="compact")
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
    handler = agent.run("What?", memory=memory)
    seen = [event async for event in handler.stream_events()]
    await handler
    results = [event.tool_output.content for event in seen if isinstance(event, ToolCallResult)]
    assert results == [
        "[1] book\nText 3 of book.\n\n[2] Text 9 of book.",
        "[1] (already shown)\n\n[3] book\nText 5 of book.",
    ]
    kept = memory.get_all()
    assert [message.content for message in kept if message.role == MessageRole.TOOL] == results
    assert [str(message.role.value) for message in kept] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    # The event says what the model read.
    (*_, given) = (event.input for event in seen if isinstance(event, AgentInput))
    assert [message.content for message in given if message.role == MessageRole.TOOL] == llm.results()
    assert llm.results()[0] == f"[1], [2] {ELSEWHERE}"


async def test_small_results_stay_as_they_are():
    turns: list[Turn] = [[{"query": "9 3"}], [{"query": "5 3"}], [{"query": "1 2 4 6 7 8"}], "Done."]
    tools = [create_search_tool(NumberedRetriever(), count_tokens=lambda text: len(text.split()))]
    agent, llm = agent_with(turns, layout="compact", compact_above=25, tools=tools)
    await agent.run("What?")
    assert llm.results(2) == [
        "[1] book\nText 3 of book.\n\n[2] Text 9 of book.",
        "[1] (already shown)\n\n[3] book\nText 5 of book.",
    ]
    assert llm.results(3)[0] == f"[1], [2] {ELSEWHERE}"
    assert llm.results(3)[2].startswith(ALL)


@pytest.mark.parametrize("layout", ["delta", "compact"])
@pytest.mark.parametrize(("kind", "words"), [(ChatMemoryBuffer, 85), (Memory, 30)])
async def test_no_pointer_refers_to_a_message_that_a_memory_dropped(layout: Layout, kind: type[BaseMemory], words: int):
    turns: list[Turn] = [
        [{"query": "9 3"}],
        "First.",
        [{"query": "3 5"}],
        "word " * words,
        [{"query": "3 7"}],
        "Third.",
    ]
    agent, llm = agent_with(turns, layout=layout)
    ctx = Context(agent)
    async with memory_of(kind, 100) as memory:
        for question in ("One?", "Two?", "Three?"):
            await agent.run(question, ctx=ctx, memory=memory)
    read = "\n".join(llm.results())
    for number in (3, 5, 7):
        assert read.count(f"Text {number} of book.") == 1
    if layout == "delta":
        assert llm.results() == [
            "[1] book\nText 3 of book.\n\n[3] Text 5 of book.",
            "[1] (already shown)\n\n[4] book\nText 7 of book.",
        ]


async def test_two_agents_of_a_workflow_read_one_context():
    llm = ScriptedAgentLLM(
        turns=[
            [{"query": "9 3"}],
            [{"tool": "handoff", "to_agent": "Writer", "reason": "write"}],
            [{"query": "3 5"}],
            "As [2] says.",
        ]
    )
    agents = [
        OrderPreservingFunctionAgent(
            name=name, description=name, llm=llm, tools=[create_search_tool(AsyncNumberedRetriever())], layout="compact"
        )
        for name in ("Researcher", "Writer")
    ]
    workflow = AgentWorkflow(agents=list(agents), root_agent="Researcher")
    await workflow.run("What?")
    first, handoff, last = llm.results()
    assert first == f"[1], [2] {ELSEWHERE}"
    assert "Writer" in handoff
    assert last == f"{ALL}[1] book\nText 3 of book.\n\n[3] Text 5 of book.\n\n[2] Text 9 of book."


@pytest.mark.parametrize(
    "options",
    [{"layout": "other"}, {"layout": None}, {"compact_above": -1}, {"compact_above": "x"}, {"compact_above": 9}],
)
def test_invalid_options_are_refused(options: dict[str, Any]):
    with pytest.raises(ValidationError, match=next(iter(options))):
        agent_with([], **options)


async def test_an_agent_with_reading_tools_alone_has_the_budget_of_the_last_search():
    # As after a handoff.
    search = create_search_tool(NumberedRetriever(), token_budget=60)
    searching = FunctionAgent(
        llm=ScriptedAgentLLM(turns=[[{"query": "9 3 5 1"}], [{"query": "2 4 6 8"}], "Found."]), tools=[search]
    )
    ctx, memory = Context(searching), Memory.from_defaults()
    await searching.run("What?", ctx=ctx, memory=memory)
    reading, llm = agent_with(["Done."], tools=[FunctionTool.from_defaults(len, name="other")], layout="compact")
    await reading.run("And?", ctx=ctx, memory=memory)
    assert len(llm.results(0)) == 2
    assert ContextOptions().count_tokens(llm.results(0)[-1]) <= 60
