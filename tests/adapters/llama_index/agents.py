"""Models that call tools as a test says, and what they have read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer, Memory
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from pydantic import Field

from tests.adapters.llama_index.conftest import RecordingLLM, ranked, stamped_node

# LlamaIndex's own: its agents read attributes that are deprecated, and with the versions that are installed here its
# memories cannot be serialized.
agent_warnings = [
    pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince211"),
    pytest.mark.filterwarnings("ignore:Skipping serialization of known unserializable key"),
]

Turn = str | list[dict[str, Any]]
"""What a model answers: a text, or the arguments of tool calls ("tool" names another tool than "search")."""


class ScriptedAgentLLM(FunctionCallingLLM):
    """Does what its turns say, one after another, and keeps the messages of each call."""

    turns: list[Turn]
    window: int = 100_000
    calls: list[list[ChatMessage]] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, context_window=self.window)

    def _reply(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        number = len(self.calls)
        self.calls.append([message.model_copy(deep=True) for message in messages])
        turn = self.turns[number]
        if isinstance(turn, str):
            return ChatResponse(message=ChatMessage(role="assistant", content=turn), delta=turn)
        calls = [
            {"id": f"call_{number}_{place}", "name": call.get("tool", "search"), "args": _without_tool(call)}
            for place, call in enumerate(turn)
        ]
        return ChatResponse(message=ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": calls}))

    def _prepare_chat_with_tools(  # type: ignore[override]
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("tool_calls", [])
        return [ToolSelection(tool_id=one["id"], tool_name=one["name"], tool_kwargs=one["args"]) for one in calls]

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def pieces() -> ChatResponseGen:
            yield self._reply(messages)

        return pieces()

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        async def pieces() -> ChatResponseAsyncGen:
            yield self._reply(messages)

        return pieces()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        raise NotImplementedError

    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        raise NotImplementedError

    def results(self, call: int = -1) -> list[str]:
        """The tool results that a call of the model read."""
        return [message.content or "" for message in self.calls[call] if message.role == MessageRole.TOOL]


def _without_tool(call: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in call.items() if name != "tool"}


class ReActLLM(RecordingLLM):
    """Answers in the text protocol of ReAct agents."""

    turns: list[str]

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.turns[len(self.prompts) - 1])

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        text = self.complete(prompt).text

        def pieces() -> CompletionResponseGen:
            yield CompletionResponse(text=text, delta=text)

        return pieces()

    @staticmethod
    def action(query: str) -> str:
        return f'Thought: I have to search.\nAction: search\nAction Input: {{"query": "{query}"}}'

    @staticmethod
    def answer(text: str) -> str:
        return f"Thought: I can answer.\nAnswer: {text}"


class SavedMemory(ChatMemoryBuffer):
    """A memory that goes through JSON with its context."""

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        messages = [message.model_dump(mode="json") for message in self.get_all()]
        return {"token_limit": self.token_limit, "messages": messages}

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        store = SimpleChatStore(store={"chat_history": [ChatMessage(**one) for one in data["messages"]]})
        return cls(token_limit=data["token_limit"], chat_store=store, tokenizer_fn=str.split)


@asynccontextmanager
async def memory_of(kind: type[BaseMemory], token_limit: int = 10_000) -> AsyncIterator[BaseMemory]:
    """A memory of one of LlamaIndex's kinds; a token is a word."""
    if not issubclass(kind, Memory):
        yield kind.from_defaults(token_limit=token_limit, tokenizer_fn=str.split)
        return
    memory = kind.from_defaults(token_limit=token_limit, token_flush_size=10, tokenizer_fn=str.split)
    yield memory
    assert isinstance(memory.sql_store, SQLAlchemyChatStore)
    if memory.sql_store._async_engine is not None:
        await memory.sql_store._async_engine.dispose()


class NumberedRetriever(BaseRetriever):
    """Finds the chunks of a book whose numbers are in the question, best first; words name other books.

    A question may say how long its search takes ("0.2s") or that it fails ("fail"); one that failed works afterwards.
    """

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.running = self.peak = 0
        super().__init__()

    def nodes(self, question: str) -> list[NodeWithScore]:
        self.questions.append(question)
        if "fail" in question and self.questions.count(question) == 1:
            raise ConnectionError("the store is down")
        source = "other" if "other" in question else "book"
        found = [int(number) for number in re.findall(r"(?<!\S)\d+(?!\S)", question)]
        return ranked(stamped_node(f"Text {number} of {source}.", number, source=source) for number in found)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes(query_bundle.query_str)


class AsyncNumberedRetriever(NumberedRetriever):
    """The same with an async method of its own."""

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question = query_bundle.query_str
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            if wait := re.search(r"([\d.]+)s\b", question):
                await asyncio.sleep(float(wait[1]))
            return self.nodes(question)
        finally:
            self.running -= 1
