"""Embeddings that hand out the vectors that are there already, so that a store embeds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from oprag.errors import ExperimentError

__all__ = ["GivenVectors"]


class GivenVectors(Embeddings):
    """LangChain's `Embeddings` of texts whose vectors are known.

    Args:
        name: What the embedder is called.
        dimension: The dimension of its vectors.
    """

    def __init__(self, name: str, dimension: int) -> None:
        # Stores that name their collections after the model look for it here.
        self.model = name
        self._none = [1.0, *([0.0] * (dimension - 1))]
        self._texts: Sequence[str] = ()
        self._vectors: NDArray[np.float32] | None = None
        self._places: dict[str, int] = {}
        self._next = 0
        self._asked: list[float] | None = None

    @contextmanager
    def giving(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> Iterator[None]:
        """Hand out these vectors for these texts.

        Args:
            texts: The texts; equal ones may have different vectors.
            vectors: Of shape (number of texts, dimension).
        """
        self._texts, self._vectors, self._next = texts, vectors, 0
        self._places = {text: place for place, text in enumerate(texts)}
        try:
            yield
        finally:
            self._texts, self._vectors, self._places = (), None, {}

    @contextmanager
    def asking(self, vector: NDArray[np.float32]) -> Iterator[None]:
        """Hand out this vector for any question, to one thread at a time.

        Args:
            vector: Of shape (dimension,).
        """
        self._asked = vector.tolist()
        try:
            yield
        finally:
            self._asked = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts."""
        return [self._vector_of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:  # noqa: ARG002
        """The vector of the question."""
        # A store may ask for any vector, to see how long it is.
        return list(self._asked or self._none)

    def _vector_of(self, text: str) -> list[float]:
        if self._vectors is None:
            return list(self._none)
        # As they come, since equal texts may stand side by side; else by the text.
        if self._next < len(self._texts) and self._texts[self._next] == text:
            place = self._next
            self._next += 1
        elif text in self._places:
            place = self._places[text]
        else:
            begin = text[:80]
            raise ExperimentError(
                f"the store asks for the vector of a text that was not put into it: {begin!r}; one that changes texts "
                "cannot be used",
                text,
            )
        row: list[float] = self._vectors[place].tolist()
        return row
