"""The interface of a store in experiments, and exact search as the simplest one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oprag.embedding.cosine import CosineSearch, as_vectors, top
from oprag.errors import ExperimentError

__all__ = [
    "EmptyStore",
    "ExactStore",
    "FoundRow",
    "Store",
    "checked_rows",
    "replace_unstorable",
    "unit_vector",
]

# PostgreSQL refuses the character 0, and the others have no UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

FoundRow = tuple[int, float | None]
"""A row, which is the number of a chunk, and the store's own score, if it has one."""


@runtime_checkable
class Store(Protocol):
    """Chunks by their rows, 0 to n - 1 in the sequence in which they were added."""

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add chunks, with vectors of any length and of shape (number of texts, dimension)."""
        ...

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """Up to k rows that are nearest to a vector of shape (dimension,) by cosine, best first."""
        ...

    def close(self) -> None:
        """Release memory, files and connections. The store cannot be used afterwards."""
        ...


class ExactStore:
    """Exact search by cosine; of equal cosines the lowest row comes first."""

    def __init__(self) -> None:
        self._vectors: NDArray[np.float32] | None = None
        self._search: CosineSearch | None = None

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add chunks; their texts are not kept."""
        if not texts:
            return
        known = self._vectors
        matrix = as_vectors(vectors, len(texts), None if known is None else known.shape[1])
        self._vectors = matrix if known is None else np.concatenate([known, matrix])
        self._search = CosineSearch(self._vectors)

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """The rows that are nearest to a vector, and their cosines."""
        if self._search is None or self._vectors is None:
            return []
        (scores,) = self._search.scores(unit_vector(vector, self._vectors.shape[1])[None])
        rows = top(scores, k)
        return list(zip(rows.tolist(), scores[rows].tolist(), strict=True))

    def close(self) -> None:
        """Release the memory."""
        self._vectors = self._search = None


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class EmptyStore:
    """An empty LangChain vector store, and how it is used."""

    store: Any
    close: Callable[[], None] = _nothing
    batch_size: int = 1_000  # chunks in one call
    key: Callable[[int], str | int] = str  # the id of a row
    search: Mapping[str, Any] = field(default_factory=dict)  # further arguments of each search
    threads: bool = True  # whether several may search it at the same time


def replace_unstorable(text: str) -> str:
    """A text that all stores accept: without halves of surrogate pairs and the character 0."""
    return _UNSTORABLE.sub("\ufffd", text)


def unit_vector(vector: Any, dimension: int) -> NDArray[np.float32]:
    """The vector of a question, of shape (dimension,), with the length 1."""
    row: NDArray[np.float32] = as_vectors(np.asarray(vector)[None], 1, dimension)[0]
    return row


def checked_rows(rows: Sequence[FoundRow], k: int, name: str) -> list[FoundRow]:
    """The first k rows that a store found; a row that it found twice is an error."""
    seen: set[int] = set()
    for row, _ in rows:
        if row in seen:
            raise ExperimentError(f"the store {name!r} found chunk {row} twice for one question", rows)
        seen.add(row)
    return list(rows[:k])
