"""The reading tools in agents: around a passage, ranges, outlines, and what they refuse."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.tools import ToolOutput
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters, SimpleVectorStore
from llama_index.core.workflow import Context

from oprag.errors import OptionError, RetrievalWarning
from oprag.llama_index import (
    OrderPreservingRetriever,
    create_reading_tools,
    create_search_tool,
    working_context_of,
)
from tests.adapters.llama_index.agents import ScriptedAgentLLM, Turn, agent_warnings
from tests.adapters.llama_index.conftest import HashedWords, ListRetriever, ranked, stamped_node

pytestmark = agent_warnings

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def parts(source: str = "book", **metadata: Any) -> list[TextNode]:
    return [stamped_node(f"Part {name} of {source}.", n, source=source, **metadata) for n, name in enumerate(NAMES)]


def index_of(nodes: list[TextNode], **options: Any) -> VectorStoreIndex:
    # Stores return the nodes in a sequence of their own.
    return VectorStoreIndex(nodes[::-1], embed_model=HashedWords(), **options)


def part(source: str, *numbers: int) -> str:
    return "\n\n".join(f"Part {NAMES[number]} of {source}." for number in numbers)


def around(number: int, **arguments: Any) -> dict[str, Any]:
    return {"tool": "read_around", "number": number, **arguments}


def range_of(source: str, start: int, end: int) -> dict[str, Any]:
    return {"tool": "read_range", "source": source, "start": start, "end": end}


def tools_for(searched: Any, budget: int = 4_000, k: int = 1, **options: Any) -> list[Any]:
    limits: dict[str, Any] = {"k": k} if isinstance(searched, VectorStoreIndex) else {}
    return [
        create_search_tool(searched, **limits, **options),
        *create_reading_tools(searched, token_budget=budget, **options),
    ]


async def after(searched: Any, *turns: Turn, **options: Any) -> tuple[list[str], Context, list[ToolOutput]]:
    """What the model read of the tools in a run, its context, and the outputs of the tools."""
    llm = ScriptedAgentLLM(turns=[*turns, "Done."])
    agent = FunctionAgent(llm=llm, tools=tools_for(searched, **options))
    ctx = Context(agent)
    output: Any = await agent.run("What?", ctx=ctx)
    called: list[Any] = list(output.tool_calls)
    return llm.results(), ctx, [one.tool_output for one in called if isinstance(one, ToolCallResult)]


SEARCH: Turn = [{"query": "Part five"}]


async def test_hits_are_read_in_order_and_numbered():
    results, ctx, outputs = await after(
        index_of([*parts(), *parts("other")]),
        [{"query": "Part five of book"}],
        [{"tool": "grep", "pattern": "PART f(ive|our)", "regex": True, "ignore_case": True}],
        [{"tool": "grep", "pattern": "Part five", "source": "other"}],
    )
    assert results[1] == (
        "[2] book\nPart four of book.\n\n[1] (already shown)\n\n[3] other\nPart four of other.\n\n"
        "[4] Part five of other.\n\n(4 hits in 4 chunks: chunks 5, 6 of 10 of book; chunks 5, 6 of 10 of other)"
    )
    assert results[2] == "[4] (already shown)\n\n(1 hit in 1 chunk: chunk 6 of 10 of other)"
    assert [node.metadata["oprag"]["number"] for node in outputs[1].raw_output] == [2, 1, 3, 4]
    assert len(await working_context_of(ctx)) == 4


@pytest.mark.parametrize("is_async", [False, True], ids=["call", "acall"])
def test_calls_without_a_workflow_read_without_numbers(is_async: bool):
    _, read_around, read_range, outline, grep = tools_for(index_of(parts()))

    def called(tool: Any, *args: Any, **given: Any) -> ToolOutput:
        output = asyncio.run(tool.acall(*args, **given)) if is_async else tool(*args, **given)
        assert isinstance(output, ToolOutput)
        return output

    expected = f"{part('book', 1, 2)}\n\n(Chunks 2 to 3 of 10 of book)"
    for _ in range(2):
        output = called(read_range, source="book", start=2, end=3)
        assert output.content == called(read_range, "book", 2, 3).content == expected
        assert [scored.metadata["oprag"]["number"] for scored in output.raw_output] == [None, None]
        assert [scored.text for scored in output.raw_output] == expected.split("\n\n")[:2]
    assert called(outline).content == "1 source:\n- book: 10 chunks, 50 tokens"
    assert called(outline, "book").content == called(outline, source="book").content
    with pytest.raises(OptionError, match="no passages are numbered yet: search first, in an agent with a working"):
        called(read_around, number=1)
    hits = called(grep, "Part six")
    assert hits.content == "book\nPart six of book.\n\n(1 hit in 1 chunk: chunk 7 of 10 of book)"
    assert [scored.text for scored in hits.raw_output] == ["Part six of book."]
    with pytest.raises(OptionError, match="read_range takes source, start, end, got 4 arguments"):
        called(read_range, "book", 1, 2, 3)
    with pytest.raises(OptionError, match="end: Field required"):
        called(read_range, "book", 1)


async def test_what_is_read_has_the_budget_of_the_search():
    index = index_of(parts())
    count = lambda text: len(text.split())  # noqa: E731
    tools = [
        create_search_tool(index, k=1, token_budget=20, count_tokens=count),
        *create_reading_tools(index, count_tokens=count),
    ]
    llm = ScriptedAgentLLM(turns=[SEARCH, [range_of("book", 1, 10)], "Done."])
    await FunctionAgent(llm=llm, tools=tools).run("What?")
    assert llm.results()[1].endswith("passages omitted: token budget exhausted)")


REFUSED: list[tuple[dict[str, Any], str]] = [
    (around(99), "no passage has the number 99; the numbers are 1 to 1"),
    ({"tool": "read_around", "number": True}, "number: Input should be a valid integer"),
    ({"tool": "read_around"}, "number: Field required"),
    (range_of("boo", 1, 2), "unknown source boo; did you mean book?"),
    ({"tool": "grep", "pattern": ""}, "the pattern is empty"),
]


@pytest.mark.parametrize(("call", "expected"), REFUSED)
async def test_refusals_are_errors_that_the_model_reads(call: dict[str, Any], expected: str):
    results, ctx, outputs = await after(index_of(parts()), SEARCH, [call], [range_of("book", 1, 1)])
    assert expected in results[1]
    assert [output.is_error for output in outputs] == [False, True, False]
    assert len(await working_context_of(ctx)) == 2


def tenants() -> VectorStoreIndex:
    """Two tenants with one name of a source, and a source of each."""
    nodes = [
        node.model_copy(update={"id_": f"{tenant}-{node.node_id}", "text": f"{node.text} It is {tenant}."})
        for tenant in ("red", "blue")
        for node in (*parts(tenant=tenant), *parts(f"{tenant}-own", tenant=tenant))
    ]
    return index_of(nodes)


def only(tenant: str) -> MetadataFilters:
    return MetadataFilters(filters=[ExactMatchFilter(key="tenant", value=tenant)])


@pytest.mark.parametrize("ours", [False, True])
async def test_nothing_outside_of_the_filter_is_read(ours: bool):
    plain = tenants().as_retriever(similarity_top_k=1, filters=only("red"))
    searched: Any = OrderPreservingRetriever(retriever=plain) if ours else plain
    results, ctx, _ = await after(
        searched,
        [{"tool": "outline"}],
        [range_of("book", 1, 10)],
        [range_of("blue-own", 1, 2)],
        [{"tool": "grep", "pattern": "It is", "limit": 99}],
    )
    assert [line.split(":")[0] for line in results[0].splitlines()] == ["2 sources", "- book", "- red-own"]
    assert results[1].count("It is red.") == 10
    assert results[1].endswith("(Chunks 1 to 10 of 10 of book)")
    assert results[2] == "unknown source blue-own; the outline lists all sources"
    assert "blue" not in "\n".join([*results[:2], results[3]])
    assert "(20 hits in 20 chunks: " in results[3]
    assert len(await working_context_of(ctx)) == 20


async def test_the_documents_of_the_search_are_the_only_ones():
    nodes = [*parts(), *parts("other")]
    for node in nodes:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"doc {node.metadata['file_name']}")
    retriever = index_of(nodes).as_retriever(doc_ids=["doc book"])
    grep = {"tool": "grep", "pattern": "other"}
    results, _, _ = await after(retriever, [{"tool": "outline"}], [range_of("other", 1, 2)], [grep])
    assert [line.split(":")[0] for line in results[0].splitlines()] == ["1 source", "- book"]
    assert results[1].startswith("unknown source other")
    assert results[2] == "(no hits in 10 chunks)"


class OwnStore(SimpleVectorStore):
    """A store that may search in a way of its own."""


class OwnRetriever(VectorIndexRetriever):
    """A retriever that may search in a way of its own."""


@pytest.mark.parametrize("kind", ["list", "store", "retriever"])
async def test_what_cannot_list_its_chunks_refuses(kind: str):
    searched: Any = {
        "list": lambda: ListRetriever(ranked(parts()[5:6])),
        "store": lambda: index_of(
            parts(), storage_context=StorageContext.from_defaults(vector_store=OwnStore())
        ).as_retriever(similarity_top_k=1),
        "retriever": lambda: OwnRetriever(index=index_of(parts()), similarity_top_k=1),
    }[kind]()
    with pytest.warns(RetrievalWarning, match="the reading tools will refuse every call"):
        results, _, outputs = await after(
            searched, SEARCH, [around(1)], [range_of("book", 1, 2)], [{"tool": "outline"}]
        )
    assert results[0] == "[1] book\nPart five of book."
    assert [output.is_error for output in outputs] == [False, True, True, True]
    for text in results[1:]:
        assert "cannot list the chunks of a source under the filter of the search; search instead" in text


async def test_an_index_that_was_given_is_read():
    index = index_of(parts())
    searched = OrderPreservingRetriever(retriever=ListRetriever(ranked(parts()[5:6])), read_neighbors=index)
    results, _, _ = await after(searched, SEARCH, [around(1, before=0, after=1)])
    assert results[1] == "[1] (already shown)\n\n[2] book\nPart six of book.\n\n(Chunks 6 to 7 of 10 of book)"


def test_bad_options():
    index = index_of(parts())
    with pytest.raises(OptionError, match="token_budget must be an integer >= 1"):
        create_reading_tools(index, token_budget=0)
    with pytest.raises(ValueError, match="retriever\n  Input should be an instance of BaseRetriever"):
        create_reading_tools("index")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown option 'top_k'"):
        create_reading_tools(index, top_k=3)
    with pytest.raises(OptionError, match="which has its own options; set"):
        create_reading_tools(OrderPreservingRetriever(retriever=index.as_retriever()), k=3)
