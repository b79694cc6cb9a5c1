"""A model that does what a test says, in the shape of LlamaIndex's chat models and of those that complete texts."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.callbacks import CBEventType
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field

from oprag.llama_index import OrderPreservingQueryEngine
from tests.adapters.llama_index.conftest import ListRetriever, ranked, stamped_node
from tests.adapters.scripted import BOOK, METHODS, QUESTION, STEPS, Scripted
from tests.helpers import WordEmbedder

SOURCE = "voyage"


class Model(Scripted, CustomLLM):
    """A scripted model that chats, or completes texts."""

    chats: bool = True
    raw: Any = None  # what the client of a provider would have given
    about: dict[str, Any] = Field(default_factory=dict)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=self.chats, context_window=1_000_000, num_output=16)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self._completion(self._called([_user(prompt)]))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self._completion(await self._acalled([_user(prompt)]))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        def chunks() -> Iterator[CompletionResponse]:
            for pair in self._streamed([_user(prompt)]):
                yield self._completion_chunk(pair)

        return chunks()

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        async def chunks() -> AsyncIterator[CompletionResponse]:
            async for pair in self._astreamed([_user(prompt)]):
                yield self._completion_chunk(pair)

        return chunks()

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._chat(self._called(messages))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._chat(await self._acalled(messages))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        def chunks() -> Iterator[ChatResponse]:
            for text, delta in self._streamed(messages):
                yield self._chat(text, delta)

        return chunks()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def chunks() -> AsyncIterator[ChatResponse]:
            async for text, delta in self._astreamed(messages):
                yield self._chat(text, delta)

        return chunks()

    def _called(self, messages: Sequence[ChatMessage]) -> str:
        with self._call_of(messages) as text:
            self._take_time()
            return text

    async def _acalled(self, messages: Sequence[ChatMessage]) -> str:
        with self._call_of(messages) as text:
            await self._take_time_async()
            return text

    def _streamed(self, messages: Sequence[ChatMessage]) -> Iterator[tuple[str, str]]:
        with self._call_of(messages) as text:
            for pair in self._pieces(text):
                self._take_time()
                yield pair

    async def _astreamed(self, messages: Sequence[ChatMessage]) -> AsyncIterator[tuple[str, str]]:
        with self._call_of(messages) as text:
            for pair in self._pieces(text):
                await self._take_time_async()
                yield pair

    def _pieces(self, text: str) -> Iterator[tuple[str, str]]:
        """Word by word, each with the text so far."""
        so_far = ""
        for word in self._words(text):
            so_far += word
            yield so_far, word

    def _chat(self, text: str, delta: str | None = None) -> ChatResponse:
        message = ChatMessage(role=MessageRole.ASSISTANT, content=text)
        return ChatResponse(message=message, delta=delta, raw=self.raw, additional_kwargs=self.about)

    def _completion(self, text: str, delta: str | None = None) -> CompletionResponse:
        return CompletionResponse(text=text, delta=delta, raw=self.raw, additional_kwargs=self.about)

    def _completion_chunk(self, pair: tuple[str, str]) -> CompletionResponse:
        return self._completion(*pair)


def _user(text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole.USER, content=text)


class Handler(BaseCallbackHandler):
    """Remembers LlamaIndex's older kind of events, each under its parent."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.started: list[tuple[CBEventType, CBEventType | None]] = []
        self.ended: list[CBEventType] = []
        self.payloads: list[tuple[CBEventType, dict[Any, Any]]] = []
        self.traces: list[str | None] = []
        self._types: dict[str, CBEventType] = {}
        self._lock = threading.Lock()

    def on_event_start(
        self, event_type: CBEventType, payload: Any = None, event_id: str = "", parent_id: str = "", **kwargs: Any
    ) -> str:
        with self._lock:
            self._types[event_id] = event_type
            self.started.append((event_type, self._types.get(parent_id)))
        return event_id

    def on_event_end(self, event_type: CBEventType, payload: Any = None, event_id: str = "", **kwargs: Any) -> None:
        with self._lock:
            self.ended.append(event_type)
            self.payloads.append((event_type, payload or {}))

    def start_trace(self, trace_id: str | None = None) -> None:
        self.traces.append(trace_id)

    def end_trace(self, trace_id: str | None = None, trace_map: Any = None) -> None:
        pass


def parts(count: int = 4, source: str = SOURCE) -> list[NodeWithScore]:
    """The parts of one source, each too long for one prompt with another, the last one ranked best."""
    return ranked(
        reversed([stamped_node(f"Part {number} of {source}.", number, source=source) for number in range(count)])
    )


def engine_of(model: Any, count: int = 4, **options: Any) -> OrderPreservingQueryEngine:
    """An engine over so many parts of one source."""
    given = {"retriever": ListRetriever(parts(count)), "prompts": STEPS, "passage_tokens": 8} | options
    return OrderPreservingQueryEngine(llm=model, **given)


def full_engine(model: Any, method: str, **options: Any) -> OrderPreservingQueryEngine:
    """An engine that has what any method needs."""
    given: dict[str, Any] = {
        "embed_model": WordEmbedder(),
        "read_source": {SOURCE: BOOK},
        "answer_threshold": -1.0,
    } | options
    return engine_of(model, method=method, **given)


WAYS = ["query", "aquery", "stream", "astream"]
every_way = pytest.mark.parametrize("way", WAYS)
every_method = pytest.mark.parametrize("method", METHODS)
both_models = pytest.mark.parametrize("chats", [True, False], ids=["chat", "completion"])


async def respond(engine: Any, way: str, question: str | QueryBundle = QUESTION) -> Any:
    """The response, whole or still being written."""
    engine.streaming = way in {"stream", "astream"}
    return await engine.aquery(question) if way in {"aquery", "astream"} else engine.query(question)


async def run(engine: Any, way: str, question: str | QueryBundle = QUESTION) -> tuple[str, Any]:
    """The text of the response, and the response."""
    response = await respond(engine, way, question)
    if way == "stream":
        return "".join(response.response_gen), response
    if way == "astream":
        return "".join([piece async for piece in response.response_gen]), response
    return str(response.response), response


async def answered(engine: Any, is_async: bool, question: str = QUESTION, **more: Any) -> Any:
    return await engine.aanswer(question, **more) if is_async else engine.answer(question, **more)
