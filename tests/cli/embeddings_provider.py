"""A provider's package, as LangChain's `init_embeddings` finds it under the name `langchain_cohere`."""

from __future__ import annotations

from typing import ClassVar

from langchain_core.embeddings import Embeddings

from tests.helpers import WordEmbedder

MODULE = "langchain_cohere"


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
