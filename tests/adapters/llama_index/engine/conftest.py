"""A model that does what a test says, in the shape of LlamaIndex's chat models and of those that complete texts."""

from __future__ import annotations

import asyncio
import re
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
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
from pydantic import Field, PrivateAttr

from oprag.llama_index import OrderPreservingQueryEngine
from tests.adapters.llama_index.conftest import ListRetriever, ranked, stamped_node
from tests.helpers import WordEmbedder
from tests.meeting import TakesTime

METHODS = ["stuff", "refine", "map_reduce", "map_rerank", "step_down", "reciprocal", "long_context", "self_route"]
QUESTION = "What happened on the voyage?"
SOURCE = "voyage"
BOOK = "The whole voyage, from its start to its end."

# The first word tells the model, and a reader of a failing test, which step a prompt belongs to.
STEPS = {
    "answer": "ANSWER {context} Q: {question}",
    "refine": "REFINE {existing_answer} WITH {context} Q: {question}",
    "map": "MAP {context} Q: {question}",
    "collapse": "COLLAPSE {answers} Q: {question}",
    "reduce": "REDUCE {answers} Q: {question}",
    "rerank": "RERANK {context} Q: {question}",
    "variants": "VARIANTS {count} {context} Q: {question}",
    "aggregate": "AGGREGATE {answers} Q: {question}",
    "route": "ROUTE {context} Q: {question}",
    "condense": "CONDENSE {chat_history} Q: {question}",
}


def by_step(prompt: str) -> str:
    """A reply that fits the step, and that depends on every letter of the prompt."""
    number = zlib.crc32(prompt.encode())
    step = prompt.split(maxsplit=1)[0]
    if step == "RERANK":
        return f"Reranked {number}.\nConfidence: {number % 101}"
    if step == "VARIANTS":
        return f"Who was {number}?\nWhere was {number}?"
    if step == "ROUTE":
        return "Unanswerable."
    if step == "CONDENSE":
        return f"What about {number}?"
    return f"{step.capitalize()} {number}, and so on."


class Model(TakesTime, CustomLLM):
    """A model with its own sync, async and streaming code, as those of providers have.

    It remembers every prompt, how many calls ran at the same time, and how many were cut off.
    """

    chats: bool = True
    reply: Callable[[str], str] = Field(default=lambda prompt: "An answer.")
    error: Callable[[int], BaseException | None] = Field(default=lambda number: None)
    raw: Any = None  # what the client of a provider would have given
    about: dict[str, Any] = Field(default_factory=dict)
    seconds: float = 0.0
    meeting: Any = None  # a Meeting, where calls wait for each other
    breaks_after: int | None = None  # chunks of a stream
    calls: list[list[ChatMessage]] = Field(default_factory=list)
    running: int = 0
    peak: int = 0
    ended: int = 0
    cut_off: int = 0
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=self.chats, context_window=1_000_000, num_output=16)

    @property
    def prompts(self) -> list[str]:
        """What each call read, as one text."""
        return ["\n\n".join(str(message.content) for message in call) for call in self.calls]

    @property
    def steps(self) -> list[str]:
        return [text.split()[0].lower() for text in self.prompts]

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

    @contextmanager
    def _call_of(self, messages: Sequence[ChatMessage]) -> Iterator[str]:
        with self._lock:
            number = len(self.calls)
            self.calls.append(list(messages))
            self.running += 1
            self.peak = max(self.peak, self.running)
        try:
            error = self.error(number)
            if error is not None:
                raise error
            yield self.reply("\n\n".join(str(message.content) for message in messages))
        except (asyncio.CancelledError, GeneratorExit):
            self.cut_off += 1
            raise
        finally:
            with self._lock:
                self.running -= 1
                self.ended += 1

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
        for number, word in enumerate(re.findall(r"\s*\S+|\s+\Z", text) or [""]):
            if number == self.breaks_after:
                raise ConnectionError("the line broke")
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


def part_numbers(text: str) -> list[int]:
    """The numbers of the parts in a text, as they stand there."""
    return [int(number) for number in re.findall(r"Part (\d+) of", text)]


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
both_sides = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
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
