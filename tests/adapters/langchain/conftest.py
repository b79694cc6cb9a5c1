"""Documents, stores and models that the tests of the LangChain adapter share."""

import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import SimpleChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field

from oprag.langchain import (
    OrderPreservingChain,
    OrderPreservingCompressor,
    OrderPreservingRetriever,
    stamp_positions,
)
from tests.adapters.scripted import QUESTION, part_numbers


def parts(count: int = 12, source: str = "voyage.txt", **metadata: Any) -> list[Document]:
    """The parts of one source, stamped, in its sequence."""
    documents = [Document(f"Part {number} of {source}.", metadata=dict(metadata)) for number in range(count)]
    return stamp_positions(documents, source=source)


def store_of(documents: list[Document], kind: type[InMemoryVectorStore] = InMemoryVectorStore) -> Any:
    """A store whose embeddings say nothing, so that the rank order is random with respect to the source."""
    store = kind(DeterministicFakeEmbedding(size=16))
    store.add_documents(documents)
    return store


def giving(documents: Any) -> RunnableLambda[str, Any]:
    """A retriever that gives these very objects, best first."""
    return RunnableLambda(lambda question: documents)


def prose(words: int, seed: int) -> str:
    """Paragraphs of sentences of made-up words; nothing of some length occurs in it twice."""
    generator = random.Random(seed)
    sentences: list[str] = []
    while sum(sentence.count(" ") + 1 for sentence in sentences) < words:
        length = generator.randint(5, 14)
        made = [
            "".join(generator.choice("bdfglmnprst") + generator.choice("aeiou") for _ in range(generator.randint(1, 4)))
            for _ in range(length)
        ]
        end = "\n\n" if generator.random() < 0.15 else " "
        sentences.append(" ".join(made).capitalize() + "." + end)
    return "".join(sentences).strip()


def edited(documents: Sequence[Document]) -> list[Document]:
    """A later version of the documents."""
    return [
        document.model_copy(update={"page_content": document.page_content.replace("e", "E", number % 2)})
        for number, document in enumerate(documents)
    ]


def texts(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


def numbers_of(documents: Sequence[Document]) -> list[int]:
    return [number for document in documents for number in part_numbers(document.page_content)]


class RecordingChatModel(SimpleChatModel):
    """Answers from a list, over and over, and remembers every prompt that it was given."""

    answers: list[str] = Field(default_factory=lambda: ["An answer."])
    prompts: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recording"

    def _call(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> str:
        self.prompts.append("\n".join(str(message.content) for message in messages))
        return self.answers[(len(self.prompts) - 1) % len(self.answers)]

    def get_num_tokens(self, text: str) -> int:
        """Counted here, since the default would download a tokenizer."""
        return len(text.split())


class Runs(BaseCallbackHandler):
    """Remembers the retriever runs that tracing sees."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.ended: dict[UUID, list[Document]] = {}
        self.failed: dict[UUID, BaseException] = {}

    def on_retriever_start(self, serialized: Any, query: Any, **about: Any) -> None:
        self.started.append({"query": query, **about})

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **about: Any) -> None:
        self.ended[run_id] = list(documents)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        self.failed[run_id] = error


@pytest.fixture
def store() -> InMemoryVectorStore:
    """Twelve parts of one source, whose rank order for `QUESTION` is not the order of the source."""
    store: InMemoryVectorStore = store_of(parts())
    ranked = numbers_of(store.similarity_search(QUESTION, k=6))
    assert ranked != sorted(ranked)
    return store


@pytest.fixture(params=["retriever", "compressor", "chain"])
def ordered(request: pytest.FixtureRequest) -> Callable[..., list[Document]]:
    """Puts documents in order, with options."""

    def through(documents: list[Document], **options: Any) -> list[Document]:
        if request.param == "compressor":
            return OrderPreservingCompressor(**options).compress_documents(documents, QUESTION)
        if request.param == "retriever":
            return OrderPreservingRetriever(retriever=giving(documents), **options).invoke(QUESTION)
        chain = OrderPreservingChain(llm=RecordingChatModel(), retriever=giving(documents), **options)
        found: list[Document] = chain.invoke({"input": QUESTION})["context"]
        return found

    return through


@pytest.fixture
def model() -> RecordingChatModel:
    return RecordingChatModel()
