"""The search tool in agents: what the model reads, and what the workflow context keeps."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core import StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent, ToolCallResult
from llama_index.core.agent.workflow.workflow_events import AgentOutput
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock, ChatMemoryBuffer, Memory
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.calling import acall_tool, call_tool
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from pydantic import ValidationError

from oprag.errors import OptionError
from oprag.llama_index import (
    OrderPreservingRetriever,
    create_search_tool,
    working_context_of,
)
from oprag.llama_index.tools import SearchTool
from tests.adapters.llama_index.agents import (
    AsyncNumberedRetriever,
    NumberedRetriever,
    ReActLLM,
    SavedMemory,
    ScriptedAgentLLM,
    Turn,
    agent_warnings,
    memory_of,
)
from tests.adapters.llama_index.conftest import HashedWords, prose

pytestmark = agent_warnings

FIRST = "[1] book\nText 3 of book.\n\n[2] Text 5 of book.\n\n[3] Text 9 of book."
SECOND = "[4] book\nText 1 of book.\n\n[2] (already shown)"


def agent_with(turns: list[Turn], retriever: Any = None, **options: Any) -> tuple[FunctionAgent, ScriptedAgentLLM]:
    llm = ScriptedAgentLLM(turns=turns)
    return FunctionAgent(llm=llm, tools=[create_search_tool(retriever or NumberedRetriever(), **options)]), llm


def results_in(output: AgentOutput) -> list[ToolCallResult]:
    called: list[Any] = list(output.tool_calls)
    return [one for one in called if isinstance(one, ToolCallResult)]


def restored(agent: FunctionAgent, ctx: Context) -> Context:
    """The context after it went through JSON."""
    return Context.from_dict(agent, json.loads(json.dumps(ctx.to_dict())))


@pytest.mark.parametrize("kind", [NumberedRetriever, AsyncNumberedRetriever], ids=["sync", "async"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_the_model_reads_what_is_new_in_source_order(kind: type[NumberedRetriever], streaming: bool):
    agent, llm = agent_with([[{"query": "9 3 5"}], [{"query": "5 1"}], "As [4] says."], kind())
    agent.streaming = streaming
    ctx = Context(agent)
    answer = await agent.run("What?", ctx=ctx)
    assert llm.results(1) == [FIRST]
    assert llm.results(2) == [FIRST, SECOND]
    working = await working_context_of(ctx)
    cited = working.cited(str(answer))
    assert [(one.number, one.passage.text) for one in cited.citations] == [(4, "Text 1 of book.")]
    assert working.context().text == "\n\n".join(f"Text {number} of book." for number in (1, 3, 5, 9))


@pytest.mark.parametrize("kind", [NumberedRetriever, AsyncNumberedRetriever], ids=["sync", "async"])
async def test_parallel_calls_lose_nothing_and_repeat_nothing(kind: type[NumberedRetriever]):
    calls = [{"query": f"{number} {number + 1} 50 0.0{number % 3}s"} for number in range(8)]
    retriever = kind()
    agent, llm = agent_with([calls, [{"query": "3 50 9"}], "Done."], retriever)
    ctx = Context(agent)
    await agent.run("What?", ctx=ctx)
    read = llm.results(2)
    assert len(read) == 9
    for number in [*range(10), 50]:
        assert "\n".join(read).count(f"Text {number} of book.") == 1
    assert len(await working_context_of(ctx)) == 11
    if isinstance(retriever, AsyncNumberedRetriever):
        assert retriever.peak > 1


async def test_a_slow_sync_retriever_does_not_hold_up_the_event_loop():
    loops: list[bool] = []

    class Asking(NumberedRetriever):
        def nodes(self, question: str) -> list[NodeWithScore]:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                loops.append(False)
            else:
                loops.append(True)
            return super().nodes(question)

    agent, llm = agent_with([[{"query": "1"}], "Done."], Asking())
    await agent.run("What?")
    assert loops == [False]
    assert llm.results() == ["[1] book\nText 1 of book."]


async def test_a_failing_search_changes_nothing_and_can_be_tried_again():
    turns: list[Turn] = [[{"query": "3"}], [{"query": "fail 3 4"}, {"query": "5"}], [{"query": "fail 3 4"}], "Done."]
    agent, llm = agent_with(turns)
    ctx = Context(agent)
    output = await agent.run("What?", ctx=ctx)
    assert sorted(llm.results()) == sorted(
        [
            "[1] book\nText 3 of book.",
            "the store is down",
            "[2] book\nText 5 of book.",
            "[1] (already shown)\n\n[3] book\nText 4 of book.",
        ]
    )
    assert [one.tool_output.is_error for one in results_in(output)].count(True) == 1
    assert (await working_context_of(ctx)).searches == ("1", "2", "3")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": ""}, "the question is empty"),
        ({"query": " \n"}, "the question is empty"),
        ({"query": None}, "must be a string, got NoneType"),
        ({"query": ["3"]}, "must be a string, got list"),
        ({}, "search() missing 1 required positional argument: 'query'"),
        ({"query": "3", "k": 5}, "search() got an unexpected keyword argument 'k'"),
        ({"query": "3", "ctx": "mine"}, None),
    ],
)
async def test_arguments_that_a_model_makes_up_are_a_tool_error(arguments: dict[str, Any], said: str | None):
    agent, llm = agent_with([[arguments], [{"query": "3"}], "Done."])
    ctx = Context(agent)
    output = await agent.run("What?", ctx=ctx)
    first, second = llm.results()
    if said is None:
        assert (first, second) == ("[1] book\nText 3 of book.", "[1] (already shown)")
        return
    assert said in first
    assert results_in(output)[0].tool_output.is_error
    assert second == "[1] book\nText 3 of book."
    assert (await working_context_of(ctx)).searches == ("1",)


async def test_nothing_found_is_said():
    agent, llm = agent_with([[{"query": "nothing"}, {"query": "nothing either"}], [{"query": "2"}], "Done."])
    output = await agent.run("What?")
    assert llm.results() == ["Nothing was found.", "Nothing was found.", "[1] book\nText 2 of book."]
    assert [len(one.tool_output.raw_output) for one in results_in(output)] == [0, 0, 1]


@pytest.mark.parametrize("memory_kind", [ChatMemoryBuffer, Memory, SavedMemory])
async def test_the_next_run_goes_on_with_the_same_numbers(memory_kind: Any):
    turns: list[Turn] = [[{"query": "9 3"}], "First.", [{"query": "3 9 5"}], "Second [3]."]
    agent, llm = agent_with(turns)
    ctx = Context(agent)
    async with memory_of(memory_kind) as memory:
        await agent.run("What?", ctx=ctx, memory=memory)
        ctx = restored(agent, ctx)
        answer = await agent.run("And then?", ctx=ctx, memory=memory)
    assert llm.results() == [
        "[1] book\nText 3 of book.\n\n[2] Text 9 of book.",
        "[1] (already shown)\n\n[3] book\nText 5 of book.\n\n[2] (already shown)",
    ]
    cited = (await working_context_of(ctx)).cited(str(answer))
    assert [one.passage.text for one in cited.citations] == ["Text 5 of book."]


class CountedBlock(BaseMemoryBlock[str]):
    """A block of a memory, which may ask a model or a store whenever it is read."""

    name: str = "counted"
    reads: int = 0

    async def _aget(self, messages: list[ChatMessage] | None = None, **kwargs: Any) -> str:
        self.reads += 1
        return ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        pass


async def test_only_the_agent_reads_the_blocks_of_a_memory():
    reads = []
    for queries in (0, 3):
        block = CountedBlock()
        later: list[Turn] = [[{"query": f"{number}"}] for number in range(queries)]
        agent, _ = agent_with([[{"query": "9"}], "First.", *later, "Second."])
        ctx = Context(agent)
        async with memory_of(Memory) as memory:
            assert isinstance(memory, Memory)
            memory.memory_blocks = [block]
            await agent.run("What?", ctx=ctx, memory=memory)
            await agent.run("And then?", ctx=ctx, memory=memory)
        reads.append(block.reads)
    # It reads them once before each call of the model.
    assert reads[1] - reads[0] == 3


@pytest.mark.parametrize(("memory_kind", "words"), [(ChatMemoryBuffer, 85), (Memory, 30)])
async def test_what_a_memory_dropped_is_shown_again(memory_kind: Any, words: int):
    turns: list[Turn] = [
        [{"query": "9 3"}],
        "First.",
        [{"query": "3 5"}],
        "word " * words,
        [{"query": "3 9 5"}],
        "Third.",
    ]
    agent, llm = agent_with(turns)
    ctx = Context(agent)
    async with memory_of(memory_kind, 100) as memory:
        for question in ("One?", "Two?", "Three?"):
            await agent.run(question, ctx=ctx, memory=memory)
    assert llm.results(3)[-1] == "[1] (already shown)\n\n[3] book\nText 5 of book."
    *kept, last = llm.results(5)
    # The result of the first run is gone; its text comes back with the same numbers.
    assert not any("Text 3" in text for text in kept)
    assert "[1] book\nText 3 of book." in last
    assert "[2] Text 9 of book." in last
    assert "\n".join([*kept, last]).count("Text 5 of book.") == 1


async def test_an_agent_that_does_not_see_what_another_read_gets_the_text():
    react = ReActLLM(
        turns=[
            ReActLLM.action("9 3"),
            'Thought: I hand off.\nAction: handoff\nAction Input: {"to_agent": "Writer", "reason": "write"}',
        ]
    )
    llm = ScriptedAgentLLM(turns=[[{"query": "3 5"}], "Done."])
    tool = create_search_tool(NumberedRetriever())
    workflow = AgentWorkflow(
        agents=[
            ReActAgent(name="Researcher", description="Researcher", llm=react, tools=[tool]),
            FunctionAgent(name="Writer", description="Writer", llm=llm, tools=[tool]),
        ],
        root_agent="Researcher",
    )
    await workflow.run("What?")
    assert "[1] book\nText 3 of book.\n\n[2] Text 9 of book." in react.prompts[-1]
    read = "\n".join(str(message.content) for message in llm.calls[-1])
    assert read.count("Text 3 of book.") == 1


async def test_a_react_agent_remembers_what_an_earlier_run_read():
    turns = [ReActLLM.action("9 3"), ReActLLM.answer("Yes."), ReActLLM.action("3 5"), ReActLLM.answer("No.")]
    llm = ReActLLM(turns=turns)
    agent = ReActAgent(llm=llm, tools=[create_search_tool(NumberedRetriever())])
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
    ctx = Context(agent)
    for question in ("One?", "Two?"):
        await agent.run(question, ctx=ctx, memory=memory)
    assert llm.prompts[-1].count("Text 3 of book.") == 1
    assert "[1] (already shown)\n\n[3] book\nText 5 of book." in llm.prompts[-1]


def predicted(tool: SearchTool, query: str) -> str:
    """The result of a call that a model makes in a loop without a workflow."""
    llm = ScriptedAgentLLM(turns=[[{"query": query}]])
    return llm.predict_and_call([tool], ChatMessage(content="What?")).response


BY_HAND: dict[str, Callable[[SearchTool, str], str]] = {
    "call": lambda tool, query: tool.call(query=query).content,
    "call with the query": lambda tool, query: tool(query).content,
    "acall": lambda tool, query: asyncio.run(tool.acall(query=query)).content,
    "acall with the query": lambda tool, query: asyncio.run(tool.acall(query)).content,
    "call_tool": lambda tool, query: call_tool(tool, {"query": query}).content,
    "acall_tool": lambda tool, query: asyncio.run(acall_tool(tool, {"query": query})).content,
    "predict_and_call": predicted,
}


@pytest.mark.parametrize("by_hand", BY_HAND.values(), ids=BY_HAND)
@pytest.mark.parametrize("kind", [NumberedRetriever, AsyncNumberedRetriever], ids=["sync", "async"])
def test_calls_without_a_workflow_have_one_working_context(
    by_hand: Callable[[SearchTool, str], str], kind: type[NumberedRetriever]
):
    tool = create_search_tool(kind())
    assert [by_hand(tool, query) for query in ("9 3 5", "5 1")] == [FIRST, SECOND]
    assert tool.working_context.context().text == "\n\n".join(f"Text {number} of book." for number in (1, 3, 5, 9))
    assert [one.passage.text for one in tool.working_context.cited("As [4] says.").citations] == ["Text 1 of book."]
    assert len(create_search_tool(kind()).working_context) == 0


def test_a_call_uses_the_sync_methods_of_the_retriever():
    """Stores such as Qdrant need a second client for async methods."""

    class Sync(NumberedRetriever):
        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise NotImplementedError

    tool = create_search_tool(Sync())
    ctx: Context = Context(FunctionAgent(llm=ScriptedAgentLLM(turns=[]), tools=[tool]))
    assert tool.call(query="9 3 5").content == tool.call(query="9 3 5", ctx=ctx).content == FIRST


@pytest.fixture
def fast_switches():
    """Threads that take turns after every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("fast_switches")
@pytest.mark.parametrize("is_async", [False, True], ids=["call", "acall"])
def test_calls_in_threads_share_no_number_and_lose_nothing(is_async: bool):
    tool = create_search_tool(NumberedRetriever())
    start = threading.Barrier(8)

    def work(worker: int) -> list[Any]:
        start.wait()
        queries = [f"{number} {number + 1} 99" for number in range(10 * worker, 10 * worker + 10)]
        return [asyncio.run(tool.acall(query)) if is_async else tool(query) for query in queries]

    with ThreadPoolExecutor(8) as pool:
        outputs = [output for done in pool.map(work, range(8)) for output in done]
    read = "\n".join(output.content for output in outputs)
    texts = [f"Text {number} of book." for number in [*range(81), 99]]
    assert all(read.count(text) == 1 for text in texts)
    assert sorted(chunk.text for chunk in tool.working_context.context().kept) == sorted(texts)
    numbers = {(node.text, node.metadata["oprag"]["number"]) for output in outputs for node in output.raw_output}
    assert sorted(number for _, number in numbers) == list(range(1, 83))
    assert len({text for text, _ in numbers}) == 82


DOCUMENT_NODES = [
    TextNode(id_=f"n{number}", text=text, metadata={"file_name": "book", "chunk_index": number})
    for number, text in enumerate(prose(random.Random(3), 60).split(". "))
]
# Without links, offsets or numbers: the store or a text has to tell the order.
BARE_NODES = [node.model_copy(update={"metadata": {"file_name": "book"}}) for node in DOCUMENT_NODES]


async def searched(retriever: Any, query: str, **options: Any) -> list[NodeWithScore]:
    agent, _ = agent_with([[{"query": query}], "Done."], retriever, **options)
    (result,) = results_in(await agent.run("What?"))
    assert not result.tool_output.is_error, result.tool_output.content
    nodes: list[NodeWithScore] = result.tool_output.raw_output
    return nodes


QUERY = " ".join(DOCUMENT_NODES[30].text.split()[1:7] + DOCUMENT_NODES[12].text.split()[1:5])


@pytest.mark.filterwarnings("ignore:the chunks of a source are in the order in which they were added to the store")
@pytest.mark.parametrize(
    ("options", "expected"), [({}, 16), ({"k": 5}, 5), ({"k": 30}, 30), ({"k": 6, "max_candidates": 40}, 6)]
)
async def test_an_index_is_searched_for_16_nodes_in_the_order_of_the_store(options: dict[str, Any], expected: int):
    index = VectorStoreIndex(BARE_NODES, embed_model=HashedWords())
    nodes = await searched(index, QUERY, **options)
    numbers = [int(scored.node_id[1:]) for scored in nodes]
    assert len(numbers) == expected
    assert numbers == sorted(numbers)
    ranks = [scored.metadata["oprag"]["rank"] for scored in nodes]
    assert sorted(ranks) == list(range(expected))
    assert ranks != sorted(ranks)


async def test_an_order_preserving_retriever_is_used_as_it_is():
    index = VectorStoreIndex(DOCUMENT_NODES, embed_model=HashedWords())
    retriever = OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=20), k=6, header="<{source}>")
    agent, llm = agent_with([[{"query": QUERY}], "Done."], retriever, token_budget=500)
    await agent.run("What?")
    assert llm.results()[0].startswith("[1] <book>\n")
    assert llm.results()[0].count("[") == 6
    assert create_search_tool(retriever, header="({source})").call(query=QUERY).content.startswith("[1] (book)\n")
    with pytest.raises(OptionError, match="has its own options; set k there"):
        create_search_tool(retriever, k=4)


@pytest.mark.parametrize(("options", "count"), [({}, 5), ({"k": 2}, 2)])
async def test_other_indexes_can_be_searched(options: dict[str, Any], count: int):
    storage = StorageContext.from_defaults(vector_store=SimpleVectorStore())
    index = SummaryIndex(DOCUMENT_NODES[:5], storage_context=storage)
    nodes = await searched(index, QUERY, **options)
    assert [scored.node_id for scored in nodes] == ["n0", "n1", "n2", "n3", "n4"][:count]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be an integer >= 1"),
        ({"k": "many"}, "k must be an integer >= 1"),
        ({"token_budget": 0}, "token_budget must be"),
        ({"similarity_top_k": 3}, "similarity_top_k"),
        ({"bogus": 3}, "bogus"),
        ({"max_candidates": 3, "k": 5}, "max_candidates"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str):
    index = VectorStoreIndex(DOCUMENT_NODES[:3], embed_model=HashedWords())
    with pytest.raises((ValidationError, OptionError), match=message):
        create_search_tool(index, **options)


@pytest.mark.parametrize("wrong", [None, "index", lambda query: [], SimpleVectorStore()])
def test_what_cannot_be_searched_is_refused(wrong: Any):
    with pytest.raises(ValidationError, match="retriever\n  Input should be an instance of BaseRetriever"):
        create_search_tool(wrong)


async def test_a_search_that_is_run_again_in_its_step_shows_its_text():
    # LlamaIndex runs a tool that waits for a person again, and the first result never becomes a message.
    search = create_search_tool(NumberedRetriever())

    async def released(ctx: Context, query: str) -> str:
        """Search, and let a person release the result."""
        found = await search.acall(ctx=ctx, query=query)
        said = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent())
        return found.content if said.response == "yes" else "Refused."

    released.__annotations__["ctx"] = Context  # LlamaIndex looks for the class
    llm = ScriptedAgentLLM(turns=[[{"tool": "released", "query": "5 3"}], "Done."])
    agent = FunctionAgent(llm=llm, tools=[FunctionTool.from_defaults(async_fn=released)])
    handler = agent.run("What?", ctx=Context(agent))
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    assert llm.results() == ["[1] book\nText 3 of book.\n\n[2] Text 5 of book."]


@pytest.mark.parametrize("wrong", [None, "ctx", FunctionAgent], ids=["none", "string", "agent"])
async def test_a_working_context_of_something_else_is_rejected(wrong: Any):
    with pytest.raises(OptionError, match="expected the Context of the agent's run, got"):
        await working_context_of(wrong)
