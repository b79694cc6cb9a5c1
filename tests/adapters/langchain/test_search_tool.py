"""The search tool: what the model is told, what it finds, and what an agent does when a search fails."""

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.unit_tests import ToolsUnitTests
from pydantic import ValidationError

from oprag.errors import MissingPositionError, OptionError
from oprag.langchain import OrderPreservingRetriever, create_search_tool
from tests.adapters.langchain.agents import ScriptedModel, agent_of, asked, found, search_tool
from tests.adapters.langchain.conftest import giving, numbers_of, parts, store_of
from tests.adapters.scripted import QUESTION, both_sides


class TestStandard(ToolsUnitTests):
    """LangChain's own standard tests for tools."""

    @property
    def tool_constructor(self) -> Any:
        return search_tool()

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": QUESTION}


async def called(tool: BaseTool, query: Any, config: Any = None, *, is_async: bool = False) -> ToolMessage:
    call = {"type": "tool_call", "name": tool.name, "args": {"query": query}, "id": "1"}
    message = await tool.ainvoke(call, config) if is_async else tool.invoke(call, config)
    assert isinstance(message, ToolMessage)
    return message


def test_the_model_is_told_one_argument():
    function = convert_to_openai_tool(search_tool(name="search_docs", description="Search the docs."))["function"]
    assert function == {
        "name": "search_docs",
        "description": "Search the docs.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to search for, as a question or in keywords."}
            },
            "required": ["query"],
        },
    }


@both_sides
@pytest.mark.parametrize("kind", ["store", "retriever", "our retriever", "runnable"])
async def test_the_documents_come_in_source_order_with_their_ranks(kind: str, is_async: bool):
    store = store_of(parts())
    ranked = numbers_of(store.similarity_search(QUESTION, k=6))
    searched: Any = {
        "store": store,
        "retriever": store.as_retriever(search_kwargs={"k": 6}),
        "our retriever": OrderPreservingRetriever(vectorstore=store, k=6),
        "runnable": RunnableLambda(lambda query: store.similarity_search(query, k=6)),
    }[kind]
    options: Any = {"k": 6} if kind == "store" else {}
    tool = create_search_tool(searched, **options)
    message = await called(tool, QUESTION, is_async=is_async)
    assert numbers_of(message.artifact) == sorted(ranked) != ranked
    assert [ranked[document.metadata["oprag"]["rank"]] for document in message.artifact] == sorted(ranked)
    assert [int(text.split()[1]) for text in str(message.content).split("\n") if text] == sorted(ranked)


@both_sides
@pytest.mark.parametrize("query", ["", "   ", "\n"], ids=repr)
async def test_an_empty_query_is_an_error_that_the_model_reads(query: str, is_async: bool):
    message = await called(search_tool(), query, is_async=is_async)
    assert message.status == "error"
    assert "empty" in str(message.content)


@both_sides
async def test_a_budget_that_fits_nothing_is_an_error_that_the_model_reads(is_async: bool):
    message = await called(search_tool(token_budget=1, count_tokens=len), "7", is_async=is_async)
    assert message.status == "error"
    assert "token_budget" in str(message.content)


@both_sides
async def test_faults_of_the_store_and_of_the_developer_are_raised(is_async: bool):
    def broken(query: str) -> list[Document]:
        raise ConnectionError("the store is away")

    with pytest.raises(ConnectionError):
        await called(create_search_tool(RunnableLambda(broken)), QUESTION, is_async=is_async)
    unplaced = create_search_tool(giving([Document("a"), Document("b")]), on_missing_position="error")
    with pytest.raises(MissingPositionError):
        await called(unplaced, QUESTION, is_async=is_async)


def test_invalid_options_are_rejected():
    store = store_of(parts())
    with pytest.raises(OptionError, match="has its own options; set k there"):
        create_search_tool(OrderPreservingRetriever(vectorstore=store), k=3)
    wrong: list[Any] = [{"serach_kwargs": {}}, {"k": 0}, {"k": 3, "search_kwargs": {"k": 4}}, {"order": "backwards"}]
    for options in [*wrong, {"search_kwargs": 5}]:
        with pytest.raises(ValidationError):
            create_search_tool(store, **options)
    with pytest.raises(ValidationError):
        create_search_tool(store.as_retriever(), search_type="mmr")


def test_a_search_of_a_store_returns_sixteen_chunks_by_default():
    assert len(create_search_tool(store_of(parts(40))).invoke({"query": QUESTION}).split("\n\n")) == 16


@both_sides
async def test_the_config_of_the_run_reaches_the_retriever(is_async: bool):
    """A retriever that is configured for each user must not search what others have."""
    tenants: list[Any] = []

    def of_tenant(query: str, config: Any) -> list[Document]:
        tenants.append(config["configurable"]["tenant"])
        return found(query)

    from langchain_core.runnables import RunnableConfig

    of_tenant.__annotations__["config"] = RunnableConfig
    agent = agent_of(ScriptedModel(turns=[["7"], "The end."]), [create_search_tool(RunnableLambda(of_tenant))])
    config = {"configurable": {"tenant": "one"}}
    await (agent.ainvoke(asked(), config) if is_async else asyncio.to_thread(agent.invoke, asked(), config))
    assert tenants == ["one"]
