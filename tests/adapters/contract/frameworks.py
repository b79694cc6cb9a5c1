"""LangChain's chain and LlamaIndex's query engine as one kind of thing: made, asked in every way, and looked into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from llama_index.core.base.llms.types import ChatMessage, LLMMetadata, MessageRole
from llama_index.core.schema import TextNode

from oprag.langchain import OrderPreservingChain
from oprag.llama_index import OrderPreservingQueryEngine
from tests.adapters.langchain.chain import conftest as langchain
from tests.adapters.llama_index.conftest import ListRetriever, ranked
from tests.adapters.llama_index.engine import conftest as llama_index
from tests.adapters.scripted import BOOK, METHODS, QUESTION, STEPS
from tests.helpers import WordEmbedder

SOURCE = "voyage"


def parts(count: int) -> list[tuple[str, dict[str, Any]]]:
    """The parts of one source, each too long for one prompt with another, the last one ranked best."""
    return [
        (f"Part {number} of {SOURCE}.", {"source": SOURCE, "chunk_index": number}) for number in reversed(range(count))
    ]


# The roles of both frameworks, by the names that the methods give them.
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "user": "user", "assistant": "assistant"}


class Framework(ABC):
    """What the tests of both frameworks need to know of one of them."""

    name: str
    embedder_option: str
    chats = True

    @abstractmethod
    def model(self, **about: Any) -> Any:
        """A scripted model: `reply` to a prompt, `error` of a call by its number, `breaks_after` pieces of a stream."""

    @abstractmethod
    def windowed(self, window: int, **about: Any) -> Any:
        """A scripted model whose prompts may have so many tokens."""

    @abstractmethod
    def retriever(self, found: Sequence[tuple[str, dict[str, Any]]]) -> Any:
        """A retriever of these texts with metadata, best first."""

    @abstractmethod
    def answerer(self, model: Any, **options: Any) -> Any:
        """The chain or the engine."""

    @abstractmethod
    def pieces(self, answerer: Any, way: str, question: str) -> AsyncIterator[str]:
        """The pieces of an answer, or all of it where it is not streamed."""

    @abstractmethod
    async def result(self, answerer: Any, way: str) -> tuple[str, list[str]]:
        """The text of an answer, and the texts of its documents."""

    @abstractmethod
    def asked(self, answerer: Any) -> list[str]:
        """The questions that its retriever was asked."""

    @abstractmethod
    def conversation(self, *said: str) -> list[Any]:
        """Messages of the user and the assistant, in turn."""

    def over(self, model: Any, method: str = "stuff", count: int = 4, **options: Any) -> Any:
        """One that has what any method needs, over so many parts of one source."""
        given: dict[str, Any] = {
            "retriever": self.retriever(parts(count)),
            "prompts": STEPS,
            "passage_tokens": 8,
            "read_source": {SOURCE: BOOK},
            "answer_threshold": -1.0,
        }
        return self.answerer(model, method=method, **given | options)

    async def run(self, answerer: Any, way: str, question: str = QUESTION) -> str:
        """The text of an answer."""
        return "".join([piece async for piece in self.pieces(answerer, way, question)])

    async def answer(self, answerer: Any, way: str, question: Any = QUESTION, **more: Any) -> Any:
        """The rich answer; ways with an a are those of async code."""
        return await answerer.aanswer(question, **more) if way[0] == "a" else answerer.answer(question, **more)

    async def compare(
        self, answerer: Any, way: str, methods: Sequence[str] = METHODS, question: Any = QUESTION, **more: Any
    ) -> Any:
        """The comparison of several methods."""
        if way[0] == "a":
            return await answerer.aanswer_with(question, methods, **more)
        return answerer.answer_with(question, methods, **more)

    def said(self, model: Any) -> list[list[tuple[str, str]]]:
        """The messages of each call, with the roles of their writers."""
        return [
            [(_ROLES[getattr(one, "type", None) or one.role.value], str(one.content)) for one in messages]
            for messages in model.calls
        ]

    def __str__(self) -> str:
        return self.name


class LangChain(Framework):
    name = "langchain"
    embedder_option = "embeddings"

    def model(self, **about: Any) -> Any:
        return langchain.Model(**about)

    def windowed(self, window: int, **about: Any) -> Any:
        return langchain.Model(profile={"max_input_tokens": window}, **about)

    def retriever(self, found: Sequence[tuple[str, dict[str, Any]]]) -> Any:
        return langchain.Found(documents=[Document(text, metadata=metadata) for text, metadata in found])

    def answerer(self, model: Any, **options: Any) -> OrderPreservingChain:
        return OrderPreservingChain(llm=model, **{"embeddings": WordEmbedder(), **options})

    async def pieces(self, answerer: Any, way: str, question: str) -> AsyncIterator[str]:
        if way == "once":
            yield answerer.invoke(question)["answer"]
        elif way == "async_once":
            yield (await answerer.ainvoke(question))["answer"]
        elif way == "stream":
            for piece in answerer.stream(question):
                yield piece.get("answer", "")
        else:
            async for piece in answerer.astream(question):
                yield piece.get("answer", "")

    async def result(self, answerer: Any, way: str) -> tuple[str, list[str]]:
        called = {"once": "invoke", "async_once": "ainvoke"}.get(way, way)
        output = await langchain.run(answerer, called, QUESTION)
        return output["answer"], [document.page_content for document in output["context"]]

    def asked(self, answerer: Any) -> list[str]:
        return answerer.retriever.asked  # type: ignore[no-any-return]

    def conversation(self, *said: str) -> list[Any]:
        return [(AIMessage if number % 2 else HumanMessage)(text) for number, text in enumerate(said)]


class Windowed(llama_index.Model):
    """Says how much it can read and write, of which LlamaIndex keeps a part for the reply."""

    window: int = 200
    replies: int = 30

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=self.chats, context_window=self.window, num_output=self.replies)


class LlamaIndex(Framework):
    """Its models chat, or complete texts."""

    embedder_option = "embed_model"

    def __init__(self, *, chats: bool) -> None:
        self.name = "llama_index" if chats else "llama_index-completion"
        self.chats = chats

    def model(self, **about: Any) -> Any:
        return llama_index.Model(chats=self.chats, **about)

    def windowed(self, window: int, **about: Any) -> Any:
        return Windowed(chats=self.chats, window=window + Windowed.model_fields["replies"].default, **about)

    def retriever(self, found: Sequence[tuple[str, dict[str, Any]]]) -> Any:
        return ListRetriever(ranked(TextNode(text=text, metadata=metadata) for text, metadata in found))

    def answerer(self, model: Any, **options: Any) -> OrderPreservingQueryEngine:
        return OrderPreservingQueryEngine(llm=model, **{"embed_model": WordEmbedder(), **options})

    async def pieces(self, answerer: Any, way: str, question: str) -> AsyncIterator[str]:
        called = {"once": "query", "async_once": "aquery"}.get(way, way)
        response = await llama_index.respond(answerer, called, question)
        if way == "stream":
            for piece in response.response_gen:
                yield piece
        elif way == "astream":
            async for piece in response.response_gen:
                yield piece
        else:
            yield str(response.response)

    async def result(self, answerer: Any, way: str) -> tuple[str, list[str]]:
        called = {"once": "query", "async_once": "aquery"}.get(way, way)
        text, response = await llama_index.run(answerer, called)
        return text, [scored.text for scored in response.source_nodes]

    def asked(self, answerer: Any) -> list[str]:
        return [bundle.query_str for bundle in answerer.retriever.questions]

    def conversation(self, *said: str) -> list[Any]:
        roles = (MessageRole.USER, MessageRole.ASSISTANT)
        return [ChatMessage(role=roles[number % 2], content=text) for number, text in enumerate(said)]


FRAMEWORKS: list[Framework] = [LangChain(), LlamaIndex(chats=True)]
KINDS_OF_MODEL: list[Framework] = [*FRAMEWORKS, LlamaIndex(chats=False)]

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS, ids=str)
each_kind_of_model = pytest.mark.parametrize("framework", KINDS_OF_MODEL, ids=str)
WAYS = ["once", "async_once", "stream", "astream"]
each_way = pytest.mark.parametrize("way", WAYS)
both_sides = pytest.mark.parametrize("way", ["once", "async_once"])
both_streams = pytest.mark.parametrize("way", ["stream", "astream"])
each_method = pytest.mark.parametrize("method", METHODS)
