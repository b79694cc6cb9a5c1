"""What the model of an agent reads of several searches, through LangChain's own `create_agent`."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import ToolException, create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from oprag.errors import OptionError, RetrievalWarning
from oprag.langchain import (
    OrderPreservingMiddleware,
    OrderPreservingRetriever,
    create_search_tool,
    working_context_of,
)
from tests.adapters.langchain.agents import (
    ScriptedModel,
    agent_of,
    asked,
    found,
    numbering,
    plain,
    results_in,
    retrieve_context,
    search_tool,
    shown,
    thread,
)
from tests.adapters.scripted import both_sides

SEARCHES: list[Any] = [["7 2"], ["2 30 7"], ["5"], "It is [1] and [4, 9]."]


async def run(agent: Any, given: Any, config: Any = None, *, is_async: bool) -> Any:
    return await agent.ainvoke(given, config) if is_async else agent.invoke(given, config)


@both_sides
async def test_each_search_shows_what_is_new_in_source_order(is_async: bool):
    model = ScriptedModel(turns=SEARCHES)
    result = await run(agent_of(model), asked(), is_async=is_async)
    assert results_in(model.requests[-1]) == [
        "[1] voyage.txt\nPart 2 of voyage.txt.\n\n[2] Part 7 of voyage.txt.",
        "[1], [2] (already shown)\n\n[3] voyage.txt\nPart 30 of voyage.txt.",
        "[4] voyage.txt\nPart 5 of voyage.txt.",
    ]
    working = working_context_of(result)
    assert working.context().text.split() == "".join(f"Part {n} of voyage.txt. " for n in (2, 5, 7, 30)).split()
    # Without `cite`, the answer is as the model wrote it.
    assert result["messages"][-1].content == SEARCHES[-1]
    cited = working.cited(result["messages"][-1].text)
    assert [(citation.number, citation.source) for citation in cited.citations] == [
        (1, "voyage.txt"),
        (4, "voyage.txt"),
    ]
    assert cited.unknown == (9,)


@both_sides
async def test_parallel_searches_are_gathered_in_the_sequence_of_the_calls(is_async: bool):
    reached = {"7": threading.Event(), "2": threading.Event()}

    def slow_first(query: str) -> list[Document]:
        # The first call ends last.
        if query == "7":
            reached["2"].wait(10)
        reached[query].set()
        return found(query)

    model = ScriptedModel(turns=[["7", "2"], "The end."])
    agent = agent_of(model, [create_search_tool(RunnableLambda(slow_first))])
    await run(agent, asked(), is_async=is_async)
    assert results_in(model.requests[-1]) == [
        "[1] voyage.txt\nPart 7 of voyage.txt.",
        "[2] voyage.txt\nPart 2 of voyage.txt.",
    ]


@both_sides
async def test_compact_makes_the_last_result_the_whole_context(is_async: bool):
    model = ScriptedModel(turns=SEARCHES)
    agent = agent_of(model, middleware=[OrderPreservingMiddleware(layout="compact")])
    result = await run(agent, asked(), is_async=is_async)
    pointer = "(shown in source order in the last search result)"
    *earlier, last = results_in(model.requests[-1])
    assert earlier == [f"[1], [2] {pointer}", f"[1], [2], [3] {pointer}"]
    assert last.startswith("Everything that was found so far")
    numbers = [f"[{number}] " for number in (1, 4, 2, 3)]
    assert [last.index(number) for number in numbers] == sorted(last.index(number) for number in numbers)
    shown = last.split("\n\n", 1)[1]
    for number in numbers:
        shown = shown.replace(number, "")
    assert shown.removeprefix("voyage.txt\n") == working_context_of(result).context().text
    # The state has the results as they were found, so another layout can be chosen later.
    assert results_in(result["messages"])[2] == "[4] voyage.txt\nPart 5 of voyage.txt."


def test_the_token_budget_is_for_everything_that_the_agent_finds():
    model = ScriptedModel(turns=[["7 2"], ["3 4 5 6"], "The end."])
    result = agent_of(model, middleware=[OrderPreservingMiddleware(token_budget=60, count_tokens=len)]).invoke(asked())
    first, second = results_in(model.requests[-1])
    assert first.count("Part") == 2 or "omitted" in first
    assert "omitted" in second
    assert len(working_context_of(result)) == 6


@pytest.mark.parametrize(
    "search",
    [
        retrieve_context,
        create_retriever_tool(
            RunnableLambda(found),  # type: ignore[arg-type]
            "search",
            "Search.",
            response_format="content_and_artifact",
        ),
        create_retriever_tool(
            OrderPreservingRetriever(retriever=RunnableLambda(found)),
            "search",
            "Search.",
            response_format="content_and_artifact",
        ),
    ],
    ids=["tutorial", "retriever tool", "our retriever in a retriever tool"],
)
def test_any_tool_that_returns_documents_is_gathered(search: Any):
    ours, theirs = ScriptedModel(turns=SEARCHES), ScriptedModel(turns=SEARCHES)
    agent_of(ours).invoke(asked())
    result = agent_of(theirs, [search]).invoke(asked())
    assert [plain(request) for request in theirs.requests] == [plain(request) for request in ours.requests]
    # Ranks are those of the search, also where the documents came in source order.
    assert [working_context_of(result).chunk(number).rank for number in (1, 2, 3, 4)] == [0, 0, 1, 0]


def test_a_tool_that_fails_is_tried_again():
    tries: list[str] = []

    @tool("search", response_format="content_and_artifact")
    def flaky(query: str) -> tuple[str, list[Document]]:
        """Search."""
        tries.append(query)
        if len(tries) == 1:
            raise ConnectionError("the store is away")
        if query == "refused":
            raise ToolException("ask in other words")
        return shown(found(query))

    flaky.handle_tool_error = True
    model = ScriptedModel(turns=[["7"], ["refused"], ["7 9"], "The end."])
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    result = agent_of(model, [flaky], middleware=[retry, OrderPreservingMiddleware()]).invoke(asked())
    assert tries == ["7", "7", "refused", "7 9"]
    assert results_in(model.requests[-1]) == [
        "[1] voyage.txt\nPart 7 of voyage.txt.",
        "ask in other words",
        "[1] (already shown)\n\n[2] voyage.txt\nPart 9 of voyage.txt.",
    ]
    assert working_context_of(result).cited("[1] [2] [3]").unknown == (3,)


def test_a_tool_may_return_a_command():
    @tool("search")
    def commanding(query: str) -> Any:
        """Search."""
        text, documents = shown(found(query))
        message = ToolMessage(text, tool_call_id="call-0-0", name="search", artifact=documents)
        return Command(update={"messages": [message]})

    model = ScriptedModel(turns=[["7 2"], "The end."])
    agent_of(model, [commanding], middleware=[OrderPreservingMiddleware()]).invoke(asked())
    assert results_in(model.requests[-1]) == ["[1] voyage.txt\nPart 2 of voyage.txt.\n\n[2] Part 7 of voyage.txt."]


@both_sides
async def test_a_result_that_is_returned_directly_is_whole_and_gathered_by_the_next_call(is_async: bool):
    direct = search_tool()
    direct.return_direct = True
    model = ScriptedModel(turns=[["7 2"], ["7 2"], "The end."])
    agent = agent_of(model, [direct], checkpointer=InMemorySaver())
    first = await run(agent, asked(), thread(), is_async=is_async)
    assert first["messages"][-1].content == "Part 2 of voyage.txt.\n\nPart 7 of voyage.txt."
    second = await run(agent, asked("Again?"), thread(), is_async=is_async)
    # A user reads it: a pointer would be useless.
    assert second["messages"][-1].content == first["messages"][-1].content
    third = await run(agent, asked("And?"), thread(), is_async=is_async)
    assert results_in(model.requests[-1]) == [
        "[1] voyage.txt\nPart 2 of voyage.txt.\n\n[2] Part 7 of voyage.txt.",
        "[1], [2] (already shown)",
    ]
    assert len(working_context_of(third)) == 2


def test_a_history_without_a_checkpointer_has_the_same_numbers_and_texts():
    kept = ScriptedModel(turns=[*SEARCHES, ["30 11"], "The end."])
    agent = agent_of(kept, checkpointer=InMemorySaver())
    agent.invoke(asked(), thread())
    with_state = agent.invoke(asked("And then?"), thread())

    passed = ScriptedModel(turns=[*SEARCHES, ["30 11"], "The end."])
    agent = agent_of(passed)
    history = agent.invoke(asked())["messages"]
    without = agent.invoke({"messages": [*history, HumanMessage("And then?")]})
    assert [plain(request) for request in passed.requests] == [plain(request) for request in kept.requests]
    assert numbering(without) == numbering(with_state)

    # As a client has it that sends JSON and not objects.
    as_json = ScriptedModel(turns=[*SEARCHES, ["30 11"], "The end."])
    agent = agent_of(as_json)
    history = json.loads(json.dumps([message.model_dump() for message in agent.invoke(asked())["messages"]]))
    agent.invoke({"messages": [*history, {"role": "user", "content": "And then?"}]})
    assert [plain(request) for request in as_json.requests] == [plain(request) for request in kept.requests]


async def test_two_threads_of_one_agent_at_once():
    def turns(messages: list[Any]) -> AIMessage:
        # Each thread searches for what its question says.
        (question,) = (message.text for message in messages if isinstance(message, HumanMessage))
        number = sum(isinstance(message, AIMessage) for message in messages)
        if number == 3:
            return AIMessage("The end.")
        query = " ".join(str(int(question) + step) for step in range(number + 1))
        return AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": f"call-{number}"}])

    agent = agent_of(ScriptedModel(turns=[turns]), checkpointer=InMemorySaver())
    starts = range(0, 32, 4)
    expected = [{step + 1: f"Part {start + step} of voyage.txt." for step in range(3)} for start in starts]
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda start: agent.invoke(asked(str(start)), thread(f"sync {start}")), starts)
        assert [numbering(result) for result in results] == expected
    tasks = [agent.ainvoke(asked(str(start)), thread(f"async {start}")) for start in starts]
    assert [numbering(result) for result in await asyncio.gather(*tasks)] == expected


@both_sides
async def test_an_agent_as_a_tool_has_a_working_context_of_its_own(is_async: bool):
    inner_model = ScriptedModel(turns=[["1 2"], "Found [1] and [2]."])
    inner = agent_of(inner_model)

    @tool("research")
    async def aresearch(question: str) -> str:
        """Let another agent search."""
        return (await inner.ainvoke(asked(question)))["messages"][-1].text  # type: ignore[no-any-return]

    @tool("research")
    def research(question: str) -> str:
        """Let another agent search."""
        return inner.invoke(asked(question))["messages"][-1].text  # type: ignore[no-any-return]

    delegated = {"name": "research", "args": {"question": "x"}}
    model = ScriptedModel(turns=[["7"], [delegated], ["7 1"], "The end."])
    agent = agent_of(model, [search_tool(), aresearch if is_async else research], checkpointer=InMemorySaver())
    result = await run(agent, asked(), thread(), is_async=is_async)
    assert results_in(inner_model.requests[-1])[0].startswith("[1] voyage.txt\nPart 1 of")
    assert numbering(result) == {1: "Part 7 of voyage.txt.", 2: "Part 1 of voyage.txt."}
    assert results_in(model.requests[-1])[1] == "Found [1] and [2]."


@pytest.mark.parametrize(
    "options",
    [
        {"layout": "both"},
        {"compact_above": -1},
        {"compact_above": True},
        {"compact_above": 9},
        {"search_tools": "search"},
        {"search_tools": []},
        {"search_tools": [search_tool]},
        {"search_tools": 3},
        {"k": 5},
        {"token_budget": 0},
        {"unknown": 1},
    ],
    ids=lambda options: f"{next(iter(options))}={type(next(iter(options.values()))).__name__}",
)
def test_invalid_options_are_rejected(options: dict[str, Any]):
    with pytest.raises(OptionError):
        OrderPreservingMiddleware(**options)


def test_a_search_tool_that_the_agent_does_not_have_is_reported():
    middleware = [OrderPreservingMiddleware(search_tools=["serach"])]
    agent = agent_of(ScriptedModel(turns=[["7"], "The end."]), middleware=middleware)
    with pytest.warns(RetrievalWarning, match="search_tools contains 'serach', but the agent's tools are search"):
        agent.invoke(asked())
