"""A LangChain vector store as a store of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from oprag.compare.stores.store import EmptyStore, FoundRow, checked_rows, replace_unstorable, unit_vector
from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError
from oprag.langchain.search import search, search_by_vector, takes_a_vector
from oprag.masking import describe
from oprag.steps import run_sync

__all__ = ["LangChainStore"]

# Metadata with the row of a document: ids come back in many forms, or not at all.
_ROW = "oprag_row"
# The query for stores that take no vector; it gets the vector of the question.
_WORDS = "question"


class LangChainStore:
    """A LangChain vector store, opened when the first chunks are added."""

    def __init__(self, name: str, open_empty: Callable[[Any, int], EmptyStore], embedder: str) -> None:
        self._name = name
        self._open_empty = open_empty
        self._embedder = embedder
        self._opened: tuple[EmptyStore, _GivenVectors, int] | None = None
        self._texts: list[str] = []
        self._rows: dict[str, int] = {}
        self._lock = Lock()

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add chunks, in batches that the store takes."""
        if not texts:
            return
        with self._lock:
            matrix = as_vectors(vectors, len(texts), None if self._opened is None else self._opened[2])
            if self._opened is None:
                embeddings = _GivenVectors(self._embedder, matrix.shape[1])
                self._opened = self._open_empty(embeddings, matrix.shape[1]), embeddings, matrix.shape[1]
            empty, embeddings, _ = self._opened
            for start in range(0, len(texts), empty.batch_size):
                part = [replace_unstorable(text) for text in texts[start : start + empty.batch_size]]
                keys = [empty.key(row) for row in range(len(self._texts), len(self._texts) + len(part))]
                rows = range(len(self._texts), len(self._texts) + len(part))
                documents = [Document(text, metadata={_ROW: row}) for row, text in zip(rows, part, strict=True)]
                with embeddings.giving(part, matrix[start : start + empty.batch_size]):
                    empty.store.add_documents(documents, ids=keys)
                self._texts += part
                self._rows |= zip(map(str, keys), rows, strict=True)

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """The rows that are nearest to a vector, and the store's own scores."""
        if self._opened is None:
            return []
        empty, embeddings, dimension = self._opened
        unit, wanted = unit_vector(vector, dimension), min(k, len(self._texts))
        keywords = {**empty.search, "k": wanted}
        with nullcontext() if empty.threads else self._lock:
            if takes_a_vector(empty.store, "similarity", keywords):
                documents, scores = run_sync(search_by_vector(empty.store, unit, "similarity", keywords))
            else:
                with embeddings.asking(unit):
                    documents, scores = run_sync(search(empty.store, _WORDS, "similarity", keywords))
        found = zip(documents, scores or [None] * len(documents), strict=True)
        rows = [(self._row_of(document), None if score is None else float(score)) for document, score in found]
        return checked_rows(rows, wanted, self._name)

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            opened, self._opened = self._opened, None
            self._texts, self._rows = [], {}
        if opened is not None:
            opened[0].close()

    def _row_of(self, document: Document) -> int:
        row = document.metadata.get(_ROW)
        if row is None:
            row = self._rows.get(str(document.id), -1)
        # Some stores return numbers as floats.
        row = int(row)
        if not (0 <= row < len(self._texts) and document.page_content == self._texts[row]):
            raise ExperimentError(
                f"the store {self._name!r} found a document that this experiment did not put in, with the id "
                f"{describe(document.id)}; it must be empty when it is opened, and give texts back as they are",
                document,
            )
        return row


class _GivenVectors(Embeddings):
    """Embeddings that are known already, so that a store embeds nothing."""

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
        """Use these vectors for these texts; equal texts may have different vectors."""
        self._texts, self._vectors, self._next = texts, vectors, 0
        self._places = {text: place for place, text in enumerate(texts)}
        try:
            yield
        finally:
            self._texts, self._vectors, self._places = (), None, {}

    @contextmanager
    def asking(self, vector: NDArray[np.float32]) -> Iterator[None]:
        """Use this vector for any question, in one thread at a time."""
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
        # A store may ask for any vector, to learn the dimension.
        return list(self._asked or self._none)

    def _vector_of(self, text: str) -> list[float]:
        if self._vectors is None:
            return list(self._none)
        # In their sequence, since equal texts may differ in their vectors; else by the text.
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
