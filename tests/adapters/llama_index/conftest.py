"""Texts, nodes, retrievers, an embedding and a language model, all deterministic and without a network."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import llama_index.core
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding, MockEmbedding
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import get_dispatcher
from pydantic import Field, PrivateAttr

SYLLABLES = [first + vowel + last for first in "bdfklmnprst" for vowel in "aeiou" for last in "lnrst"]


@pytest.fixture(scope="package", autouse=True)
def _words_are_tokens() -> Iterator[None]:
    """LlamaIndex would load the tables of tiktoken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama_index.core, "global_tokenizer", str.split)
        yield


def prose(rng: random.Random, sentences: int, *, first: int = 0) -> str:
    """Sentences of random words; each begins with its number, so that no two are equal."""
    lines = (
        " ".join([f"S{number}", *(rng.choice(SYLLABLES) for _ in range(rng.randint(6, 12)))]) + "."
        for number in range(first, first + sentences)
    )
    return " ".join(lines)


def pdf_pages(rng: random.Random, labels: Sequence[str], *, sentences: int = 12) -> list[Document]:
    """One `Document` a page with a random id, as PDF readers make them."""
    return [
        Document(text=prose(rng, sentences), metadata={"file_name": "report.pdf", "page_label": label})
        for label in labels
    ]


def stamped_node(text: str, number: int, *, source: str = "book", **metadata: Any) -> TextNode:
    return TextNode(
        id_=f"{source}-{number}", text=text, metadata={"file_name": source, "chunk_index": number, **metadata}
    )


def ranked(nodes: Iterable[BaseNode]) -> list[NodeWithScore]:
    """Nodes, best first, with falling scores."""
    return [NodeWithScore(node=node, score=1 / (1 + rank)) for rank, node in enumerate(nodes)]


def numbered(numbers: Iterable[int], **metadata: Any) -> list[NodeWithScore]:
    """The stamped chunks of one source with these numbers, best first."""
    return ranked(stamped_node(f"text {number}.", number, **metadata) for number in numbers)


def numbers(nodes: Iterable[NodeWithScore]) -> list[int]:
    return [scored.node.metadata["chunk_index"] for scored in nodes]


def texts(nodes: Iterable[NodeWithScore]) -> list[str]:
    return [scored.text for scored in nodes]


def places(all_nodes: Iterable[BaseNode], given: Iterable[NodeWithScore]) -> list[int]:
    """Where the given nodes stand in the whole sequence that a parser made."""
    place = {node.node_id: index for index, node in enumerate(all_nodes)}
    return [place[scored.node_id] for scored in given]


def inversions(values: Sequence[int]) -> int:
    return sum(first > second for first, second in combinations(values, 2))


class HashedWords(BaseEmbedding):
    """A bag of words, each word in a place given by its checksum."""

    size: int = 64

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.0] * self.size
        for word in text.lower().split():
            vector[zlib.crc32(word.strip(".:?").encode()) % self.size] += 1.0
        vector[0] += 0.01  # A text without words still has a direction.
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class RandomEmbedding(MockEmbedding):
    """Vectors that say nothing, the same for the same text; counts what is embedded."""

    _embedded: list[str] = PrivateAttr(default_factory=list)

    def _get_text_embedding(self, text: str) -> list[float]:
        self._embedded.append(text)
        return self._get_query_embedding(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        chance = random.Random(query)
        return [chance.uniform(-1, 1) for _ in range(self.embed_dim)]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class RecordingLLM(CustomLLM):
    """Answers "yes" and keeps every prompt."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=1_000_000, num_output=16)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text="yes")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        self.prompts.append(prompt)

        def answer() -> CompletionResponseGen:
            yield CompletionResponse(text="yes", delta="yes")

        return answer()


class ListRetriever(BaseRetriever):
    """Gives the same nodes for every question, and keeps the questions."""

    def __init__(self, nodes: Sequence[NodeWithScore], **kwargs: Any) -> None:
        self.nodes = list(nodes)
        self.questions: list[QueryBundle] = []
        super().__init__(**kwargs)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.questions.append(query_bundle)
        return list(self.nodes)


class Spans(BaseSpanHandler[BaseSpan]):
    """Keeps the names of all spans, each with that of its parent."""

    seen: list[tuple[str, str | None]] = Field(default_factory=list)

    def new_span(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> BaseSpan:
        self.seen.append((_span_name(id_), parent_span_id and _span_name(parent_span_id)))
        return BaseSpan(id_=id_, parent_id=parent_span_id)

    def prepare_to_exit_span(self, id_: str, *args: Any, **kwargs: Any) -> BaseSpan | None:
        return self.open_spans.get(id_)

    def prepare_to_drop_span(self, id_: str, *args: Any, **kwargs: Any) -> BaseSpan | None:
        return self.open_spans.get(id_)


def _span_name(span_id: str) -> str:
    """The id without the UUID of five groups at its end."""
    return span_id.rsplit("-", 5)[0]


class Events(BaseEventHandler):
    seen: list[BaseEvent] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self.seen.append(event)


@pytest.fixture
def spans() -> Iterator[Spans]:
    handler, dispatcher = Spans(), get_dispatcher()
    before = list(dispatcher.span_handlers)
    dispatcher.add_span_handler(handler)
    yield handler
    dispatcher.span_handlers = before


@pytest.fixture
def events() -> Iterator[Events]:
    handler, dispatcher = Events(), get_dispatcher()
    before = list(dispatcher.event_handlers)
    dispatcher.add_event_handler(handler)
    yield handler
    dispatcher.event_handlers = before
