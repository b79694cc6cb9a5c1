"""Embeddings that count what they embed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings


class CountingEmbeddings(Embeddings):
    """Vectors that depend on the words of a text alone; texts with the same words are near each other.

    Attributes:
        documents: The texts that were embedded as documents.
        questions: The texts that were embedded as questions.
        fails_on: A text that it fails on.
        changes: What becomes of the vectors before they are given, to spoil them.
    """

    def __init__(self, dimension: int = 32, model: str = "words") -> None:
        self.dimension = dimension
        self.model = model
        self.documents: list[str] = []
        self.questions: list[str] = []
        self.fails_on: str | None = None
        self.changes: Callable[[Any], Any] | None = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        for text in texts:
            if text == self.fails_on:
                raise RuntimeError("out of memory")
            self.documents.append(text)
        return self._changed([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> list[float]:
        if text == self.fails_on:
            raise RuntimeError("out of memory")
        self.questions.append(text)
        return self._changed([self._vector(text)])[0]

    def _changed(self, vectors: list[list[float]]) -> list[list[float]]:
        return vectors if self.changes is None else self.changes(vectors)

    def forget(self) -> None:
        self.documents.clear()
        self.questions.clear()

    @property
    def embedded(self) -> tuple[int, int]:
        """How many questions and how many documents were embedded."""
        return len(self.questions), len(self.documents)

    def _vector(self, text: str) -> list[float]:
        vector = np.zeros(self.dimension)
        for word in text.lower().replace(".", " ").split():
            vector += np.random.default_rng(zlib.crc32(word.encode())).standard_normal(self.dimension)
        return [float(number) for number in np.asarray(vector, dtype=np.float32)]
