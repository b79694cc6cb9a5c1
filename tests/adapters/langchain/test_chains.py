"""The retriever runs unchanged wherever a LangChain retriever does, and the model reads the source in order.

What counts is the prompt that the model was given.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.chains import (
    RetrievalQA,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore

from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import RecordingChatModel, numbers_of
from tests.adapters.scripted import QUESTION, part_numbers


@pytest.fixture
def retriever(store: InMemoryVectorStore) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(vectorstore=store, k=6)


@pytest.fixture
def in_order(store: InMemoryVectorStore) -> list[int]:
    """The parts that the prompt must show, in the order of the source."""
    return sorted(numbers_of(store.similarity_search(QUESTION, k=6)))


async def test_retrieval_qa(model, retriever, in_order):
    chain = RetrievalQA.from_chain_type(model, retriever=retriever, return_source_documents=True)
    result = chain.invoke({"query": QUESTION})
    assert result["result"] == "An answer."
    assert numbers_of(result["source_documents"]) == in_order
    assert await chain.ainvoke({"query": QUESTION}) == result
    assert [part_numbers(prompt) for prompt in model.prompts] == [in_order, in_order]


class Searching(RecordingChatModel):
    """Searches once, then answers from what the tool said."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        if not isinstance(messages[-1], ToolMessage):
            call = {"name": "search", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"}
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])
        return super()._generate(messages, stop, run_manager, **kwargs)


async def test_an_agent(retriever, in_order):
    model = Searching()
    agent: Any = create_agent(model, [create_retriever_tool(retriever, "search", "Searches the voyage.")])
    for result in (
        agent.invoke({"messages": [HumanMessage("What happened?")]}),
        await agent.ainvoke({"messages": [HumanMessage("What happened?")]}),
    ):
        assert result["messages"][-1].content == "An answer."
    assert [part_numbers(prompt) for prompt in model.prompts] == [in_order, in_order]
