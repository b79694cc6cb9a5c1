"""Vectors, and what NumPy says about them; stores that a user may have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

CHUNKS, DIMENSION = 300, 24


def vectors_of(chunks: int = CHUNKS, seed: int = 1) -> Any:
    """Vectors that are not of unit length, some of them equal."""
    generator = np.random.default_rng(seed)
    vectors = generator.standard_normal((chunks, DIMENSION)).astype(np.float32) * 3
    vectors[chunks // 2] = vectors[3]
    return vectors


def texts_of(chunks: int = CHUNKS) -> list[str]:
    return [f"chunk {row} of {chunks}" for row in range(chunks)]


def cosines(vectors: Any, question: Any) -> Any:
    return vectors @ question / np.linalg.norm(vectors, axis=1) / np.linalg.norm(question)


def check_found(found: Any, vectors: Any, question: Any, k: int, close: float = 1e-5) -> None:
    """The rows are the k nearest, best first; rows that are equally near may change places."""
    rows = [row for row, _ in found]
    exact = cosines(vectors.astype(np.float64), question.astype(np.float64))
    assert len(rows) == min(k, len(vectors))
    assert len(set(rows)) == len(rows)
    np.testing.assert_allclose(exact[rows], np.sort(exact)[::-1][:k], atol=close)


class Plain(VectorStore):
    """A store that nothing is known about, which can do no more than it must."""

    def __init__(self, embeddings: Any) -> None:
        self._embeddings = embeddings
        self.documents: list[Document] = []
        self.vectors: list[Any] = []

    def add_texts(self, texts: Any, metadatas: Any = None, **_: Any) -> list[str]:
        self.documents += [Document(text, metadata=one) for text, one in zip(texts, metadatas, strict=True)]
        self.vectors += self._embeddings.embed_documents(list(texts))
        return []

    def similarity_search_with_score(self, query: str, k: int = 4, **_: Any) -> list[tuple[Document, float]]:
        near = np.array(self.vectors) @ np.array(self._embeddings.embed_query(query))
        return [(self.documents[row], float(near[row])) for row in np.argsort(-near, kind="stable")[:k]]

    def similarity_search(self, query: str, k: int = 4, **_: Any) -> list[Document]:
        raise NotImplementedError

    @classmethod
    def from_texts(cls, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


class Faulty(Plain):
    """One whose answers are wrong in the way that it is told."""

    fault = ""

    def similarity_search_with_score(self, query: str, k: int = 4, **_: Any) -> list[tuple[Document, float]]:
        found = super().similarity_search_with_score(query, k)
        if self.fault == "twice":
            return [found[0], *found[:-1]]
        if self.fault == "fewer":
            return found[: k // 2]
        known = {"unknown row": {"oprag_row": CHUNKS}, "another row": found[0][0].metadata}.get(self.fault, {})
        return [(Document("of another run", metadata=known), 1.0), *found[:-1]]


def plain(embeddings: Any) -> Plain:
    return Plain(embeddings)


closed: list[str] = []


@contextmanager
def cleaned(embeddings: Any) -> Iterator[VectorStore]:
    yield InMemoryVectorStore(embeddings)
    closed.append("langchain")


class _Full(Plain):
    def add_texts(self, *_: Any, **__: Any) -> list[str]:
        raise OSError("the disk is full")


@contextmanager
def cleaned_full(embeddings: Any) -> Iterator[VectorStore]:
    try:
        yield _Full(embeddings)
    finally:
        closed.append("full")
