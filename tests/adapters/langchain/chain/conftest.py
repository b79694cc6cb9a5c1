"""A model that does what a test says, the documents that it reads, and what a run looked like."""

from __future__ import annotations

import asyncio
import re
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_core.tracers.schemas import Run
from pydantic import Field, PrivateAttr

from oprag.langchain import OrderPreservingChain
from tests.adapters.langchain.conftest import QUESTION, parts
from tests.meeting import TakesTime

# One-word openings tell the model, and a reader of a failing test, which step a prompt belongs to.
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
METHODS = ["stuff", "refine", "map_reduce", "map_rerank", "step_down", "reciprocal", "long_context", "self_route"]
SOURCE = "voyage.txt"
BOOK = "The whole voyage, from its start to its end."


class Model(TakesTime, BaseChatModel):
    """A chat model with its own sync, async and streaming code, as those of providers have.

    It remembers every prompt, how many calls ran at the same time, and how many were cut off.
    """

    reply: Callable[[str], str] = Field(default=lambda prompt: "An answer.")
    error: Callable[[int], BaseException | None] = Field(default=lambda number: None)
    seconds: float = 0.0
    meeting: Any = None  # a Meeting, where calls wait for each other
    counts: bool = False
    breaks_after: int | None = None  # chunks of a stream
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    running: int = 0
    peak: int = 0
    ended: int = 0
    cut_off: int = 0
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def get_num_tokens(self, text: str) -> int:
        """Counted here, since the default would download a tokenizer."""
        return len(text.split())

    @property
    def read(self) -> list[str]:
        """What each call read, as one text."""
        return ["\n".join(str(message.text) for message in messages) for messages in self.prompts]

    @property
    def steps(self) -> list[str]:
        return [text.split()[0].lower() for text in self.read]

    @contextmanager
    def _call_of(self, messages: list[BaseMessage]) -> Iterator[str]:
        with self._lock:
            number = len(self.prompts)
            self.prompts.append(messages)
            self.running += 1
            self.peak = max(self.peak, self.running)
        try:
            error = self.error(number)
            if error is not None:
                raise error
            yield self.reply("\n".join(str(message.text) for message in messages))
        except (asyncio.CancelledError, GeneratorExit):
            self.cut_off += 1
            raise
        finally:
            with self._lock:
                self.running -= 1
                self.ended += 1

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        with self._call_of(messages) as text:
            self._take_time()
            return self._result(messages, text)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        with self._call_of(messages) as text:
            await self._take_time_async()
            return self._result(messages, text)

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
        with self._call_of(messages) as text:
            for chunk in self._chunks(messages, text):
                self._take_time()
                yield chunk

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        with self._call_of(messages) as text:
            for chunk in self._chunks(messages, text):
                await self._take_time_async()
                yield chunk

    def _result(self, messages: list[BaseMessage], text: str) -> ChatResult:
        message = AIMessage(text, usage_metadata=self._usage(messages, text))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _chunks(self, messages: list[BaseMessage], text: str) -> Iterator[ChatGenerationChunk]:
        """Word by word, and the usage in two parts, as some providers give it."""
        # An empty reply is one empty chunk; LangChain refuses a stream without any.
        for number, word in enumerate(re.findall(r"\s*\S+|\s+\Z", text) or [""]):
            if number == self.breaks_after:
                raise ConnectionError("the line broke")
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        usage = self._usage(messages, text)
        if usage is not None:
            read, written = usage["input_tokens"], usage["output_tokens"]
            first = UsageMetadata(input_tokens=read, output_tokens=0, total_tokens=read)
            second = UsageMetadata(input_tokens=0, output_tokens=written, total_tokens=written)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=first))
            yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=second))

    def _usage(self, messages: list[BaseMessage], text: str) -> UsageMetadata | None:
        """Figures that no estimate would come to."""
        if not self.counts:
            return None
        read, written = 1_000 * len(messages), 7 * len(text)
        return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


class Found(BaseRetriever):
    """Gives these documents, best first, and remembers the questions."""

    documents: list[Document]
    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.asked.append(query)
        return self.documents


class Starts(BaseCallbackHandler):
    """Remembers which models and chains were started, with what tracing is told about them."""

    def __init__(self) -> None:
        self.models: list[dict[str, Any]] = []
        self.chains: list[dict[str, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
        self.models.append(about)

    def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
        self.chains.append(about)


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


def ranked(documents: Sequence[Document]) -> list[Document]:
    """The documents with the last one of the source best."""
    return list(reversed(documents))


def chain_of(model: Any, count: int = 4, **options: Any) -> OrderPreservingChain:
    """A chain over so many parts of one source, each too long for one prompt with another."""
    given = {"retriever": Found(documents=ranked(parts(count))), "prompts": STEPS, "passage_tokens": 8} | options
    return OrderPreservingChain(llm=model, **given)


def full_chain(model: Any, method: str, **options: Any) -> OrderPreservingChain:
    """A chain that has what any method needs."""
    return chain_of(
        model,
        method=method,
        embeddings=DeterministicFakeEmbedding(size=8),
        read_source={SOURCE: BOOK},
        answer_threshold=-1.0,
        **options,
    )


async def run(chain: Any, way: str, given: Any, config: Any = None) -> Any:
    """The result of a chain, whichever way it is called."""
    if way == "invoke":
        return chain.invoke(given, config)
    if way == "ainvoke":
        return await chain.ainvoke(given, config)
    if way == "batch":
        return chain.batch([given], config)[0]
    if way == "abatch":
        return (await chain.abatch([given], config))[0]
    pieces = list(chain.stream(given, config)) if way == "stream" else [p async for p in chain.astream(given, config)]
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = whole + piece
    return whole


WAYS = ["invoke", "ainvoke", "batch", "abatch", "stream", "astream"]
every_way = pytest.mark.parametrize("way", WAYS)
both_sides = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def tree(run_: Run) -> Any:
    """A run as nested lists of names, children in the sequence of their start."""
    return [run_.name, [tree(child) for child in run_.child_runs]]


def descendants(run_: Run) -> Iterator[Run]:
    for child in run_.child_runs:
        yield child
        yield from descendants(child)


@pytest.fixture
def collector() -> RunCollectorCallbackHandler:
    return RunCollectorCallbackHandler()


@pytest.fixture
def question() -> str:
    return QUESTION
