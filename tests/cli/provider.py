"""Packages of providers, as LangChain finds them under `langchain_groq`, `langchain_ollama` and `langchain_cohere`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import model_validator

from tests.compare import spending
from tests.helpers import WordEmbedder

if TYPE_CHECKING:
    import pytest

MODULE = "langchain_groq"
FREE_MODULE = "langchain_ollama"
EMBEDDINGS_MODULE = "langchain_cohere"


def _prompt_of(messages: list[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


class ChatGroq(BaseChatModel):
    """Does what its model name says, and remembers what it was asked."""

    model: str
    base_url: str | None = None
    api_key: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    replies: ClassVar[dict[str, str]] = {
        "cranes": "It lifts forty tons [1].\nConfidence: 80",
        "empty": "",
        "hostile": "red \x1b[31m and \x1b]0;owned\x07 [bold]bold[/bold] :smile:",
        "laid-out": "One.\n\n- two\n-  three\n\n    four = [4]\n" + "long " * 60 + "line\n\nEnd.",
        "pausing": "First second third.",
        "unsure": "Unanswerable.",
    }
    made: ClassVar[list[ChatGroq]] = []
    prompts: ClassVar[list[str]] = []

    @model_validator(mode="after")
    def _key(self) -> ChatGroq:
        if self.model == "keyless":
            raise ValueError("API key required: set GROQ_API_KEY")
        if self.model == "refused":
            raise RuntimeError("the client refuses\nFor troubleshooting, visit a page")
        self.made.append(self)
        return self

    @property
    def _llm_type(self) -> str:
        return "groq"

    def get_num_tokens(self, text: str) -> int:
        """Counted here, since the default would download a tokenizer."""
        return len(text.split())

    def _reply(self, messages: list[BaseMessage]) -> str:
        prompt = _prompt_of(messages)
        self.prompts.append(prompt)
        if self.model == "down" or (self.model == "half-down" and len(self.prompts) % 2):
            raise ConnectionError("the line is down\nand this is a second line")
        if "other questions about this text" in prompt:
            return "How many cranes are there?\nWhere was the crane built?"
        return self.replies.get(self.model, self.replies["cranes"])

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._reply(messages)))])

    def _stream(self, messages: Any, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for number, piece in enumerate(re.findall(r"\s+|\S+", self._reply(messages)) or [""]):
            if self.model == "pausing" and number:
                sys.stdin.readline()
            if self.model == "breaking" and number == 3:
                raise ConnectionError("the line broke")
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


class ChatOllama(BaseChatModel):
    """A model of this machine that reads spending as the function of its name does."""

    model: str

    @property
    def _llm_type(self) -> str:
        return "ollama"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        reply = getattr(spending, self.model)()(_prompt_of(messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])


class CohereEmbeddings(Embeddings):
    """Does what its model name says, and remembers what it embedded."""

    documents: ClassVar[list[str]] = []
    questions: ClassVar[list[str]] = []

    def __init__(self, model: str) -> None:
        if model == "keyless":
            raise ValueError("Did not find cohere_api_key\nFor troubleshooting, visit https://a.page")
        self.model = model
        self._words = WordEmbedder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.model == "down":
            raise ConnectionError("the line is down\nand this is a second line")
        if self.model == "silent":
            raise TimeoutError
        self.documents.extend(texts)
        vectors: list[list[float]] = self._words.embed_documents(texts).tolist()
        return vectors[1:] if self.model == "short" else vectors

    def embed_query(self, text: str) -> list[float]:
        self.questions.append(text)
        vector: list[float] = self._words.embed_questions([text])[0].tolist()
        return vector


def install(monkeypatch: pytest.MonkeyPatch) -> type[ChatGroq]:
    """Let this module be the packages of the providers, which have not been asked anything."""
    for module in (MODULE, FREE_MODULE, EMBEDDINGS_MODULE):
        monkeypatch.setitem(sys.modules, module, sys.modules[__name__])
    monkeypatch.setattr(ChatGroq, "made", [])
    monkeypatch.setattr(ChatGroq, "prompts", [])
    for name in ("documents", "questions"):
        monkeypatch.setattr(CohereEmbeddings, name, [])
    return ChatGroq
