"""Agents whose model does what a test says, and what they share: tools, documents, and a look at the prompts."""

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool
from pydantic import Field, PrivateAttr

from oprag import WorkingContext
from oprag.langchain import OrderPreservingMiddleware, create_search_tool, working_context_of
from tests.adapters.langchain.conftest import parts

PARTS = parts(40)

# An answer, the queries of searches, or whole tool calls.


class ScriptedModel(BaseChatModel):
    """Takes its turns, whatever it reads, and remembers exactly what that was.

    The turn is the number of its own messages in the conversation, so that one model serves many threads; with
    `counts_calls` it is the number of the call, for conversations whose messages are removed.
    """

    turns: list[Any]
    counts_calls: bool = False
    # Of each call; some models have the same in every turn.
    ids: Callable[[int, int], str] = Field(default=lambda turn, call: f"call-{turn}-{call}")
    requests: list[list[BaseMessage]] = Field(default_factory=list)
    tools: list[Any] = Field(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        self.tools = list(tools)
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        with self._lock:
            called = len(self.requests)
            self.requests.append([message.model_copy(deep=True) for message in messages])
        number = called if self.counts_calls else sum(isinstance(message, AIMessage) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=self._message(number, messages))])

    def _message(self, number: int, messages: list[BaseMessage]) -> AIMessage:
        turn = self.turns[number % len(self.turns)]
        if isinstance(turn, str):
            return AIMessage(turn)
        if callable(turn):
            return turn(messages)  # type: ignore[no-any-return]
        calls = [call if isinstance(call, dict) else {"name": "search", "args": {"query": call}} for call in turn]
        return AIMessage("", tool_calls=[{"id": self.ids(number, n), **call} for n, call in enumerate(calls)])


def found(query: str) -> list[Document]:
    """The parts whose numbers a query has, best first."""
    return [PARTS[int(number)] for number in re.findall(r"\d+", query)]


def shown(documents: Sequence[Document]) -> tuple[str, list[Document]]:
    """What a search tool returns."""
    return "\n\n".join(document.page_content for document in documents), list(documents)


def search_tool(**options: Any) -> BaseTool:
    """Our tool over the parts: the query "7 2" finds part 7, then part 2."""
    return create_search_tool(RunnableLambda(found), **options)


@tool("search", response_format="content_and_artifact")
def retrieve_context(query: str) -> tuple[str, list[Document]]:
    """Retrieve information to help answer a query."""
    # As the tutorial of LangChain has it.
    retrieved = found(query)
    serialized = "\n\n".join(f"Source: {one.metadata}\nContent: {one.page_content}" for one in retrieved)
    return serialized, retrieved


def agent_of(model: BaseChatModel, tools: Sequence[Any] | None = None, **options: Any) -> Any:
    options = {"middleware": [OrderPreservingMiddleware()], **options}
    return create_agent(model, list(tools) if tools is not None else [search_tool()], **options)


def thread(name: str = "one") -> Any:
    return {"configurable": {"thread_id": name}}


def asked(question: str = "What happened?") -> Any:
    return {"messages": [("human", question)]}


def results_in(messages: Sequence[BaseMessage]) -> list[str]:
    """The texts of the tool messages."""
    return [str(message.content) for message in messages if isinstance(message, ToolMessage)]


def plain(messages: Sequence[BaseMessage]) -> list[tuple[str, Any, Any]]:
    """What a provider is sent of messages."""
    return [(message.type, message.content, getattr(message, "tool_calls", None)) for message in messages]


def has_whole_prefix(first: Sequence[BaseMessage], second: Sequence[BaseMessage]) -> bool:
    """Whether the second prompt goes on where the first one ends, byte for byte."""
    return plain(second)[: len(first)] == plain(first)


def dangling(messages: Sequence[BaseMessage], working: WorkingContext) -> list[int]:
    """The numbers in pointers whose text the model has not read up to there."""
    seen = ""
    missing: list[int] = []
    for text in results_in(messages):
        seen += text
        for pointer in re.findall(r"((?:\[\d+\](?:, )?)+) \(already shown\)", text):
            missing += [n for n in map(int, re.findall(r"\d+", pointer)) if working.chunk(n).text not in seen]
    return missing


def numbering(state: Any) -> dict[int, str]:
    """The texts of a working context by their numbers."""
    working = working_context_of(state)
    return {number: working.chunk(number).text for number in range(1, len(working) + 1)}
