"""A model that does what a test says, the documents that it reads, and what a run looked like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
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
from pydantic import Field

from oprag.langchain import OrderPreservingChain
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import BOOK, QUESTION, STEPS, Scripted

SOURCE = "voyage.txt"


class Model(Scripted, BaseChatModel):
    """A scripted chat model."""

    counts: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def get_num_tokens(self, text: str) -> int:
        """Counted here, since the default would download a tokenizer."""
        return len(text.split())

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
        for word in self._words(text):
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
