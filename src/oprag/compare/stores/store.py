"""What an experiment needs of a store: put vectors in, and find the nearest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError, MissingExtraError, OpragError

__all__ = ["FoundRow", "MissingStoreError", "Store", "checked_rows", "storable", "unit_vector"]

# PostgreSQL refuses the character 0, and nothing can write the other ones.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

FoundRow = tuple[int, float | None]
"""A row, which is the number of a chunk, and the store's own score of it, where it gives one."""


@runtime_checkable
class Store(Protocol):
    """Chunks by their rows, 0 to n - 1 in the sequence in which they were put in."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Put chunks in.

        Args:
            texts: The texts of the chunks.
            vectors: Their vectors, of shape (number of texts, dimension); their lengths do not matter.
        """
        ...

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """The rows that are nearest to a vector by cosine, best first; fewer than k where the store finds no more.

        Args:
            vector: Of shape (dimension,).
            k: How many; all where there are no more.
        """
        ...

    def close(self) -> None:
        """Give back what it holds: memory, files, connections. It cannot be used afterwards."""
        ...


class MissingStoreError(MissingExtraError):
    """The package of a store is not installed."""

    def __init__(self, store: str, packages: str) -> None:
        OpragError.__init__(self, f"the store {store!r} needs an optional dependency: pip install {packages}", store)


def storable(text: str) -> str:
    """A text as all stores take it: without halves of surrogate pairs, and without the character 0."""
    return _UNSTORABLE.sub("\ufffd", text)


def unit_vector(vector: Any, dimension: int) -> NDArray[np.float32]:
    """The vector of a question, of shape (dimension,), with the length 1.

    Raises:
        EmbeddingError: It has another shape, or is not finite.
    """
    row: NDArray[np.float32] = as_vectors(np.asarray(vector)[None], 1, dimension)[0]
    return row


def checked_rows(rows: Sequence[FoundRow], k: int, name: str) -> list[FoundRow]:
    """What a store found, at most k rows, and none of them twice.

    Args:
        rows: What it found.
        k: How many were asked for.
        name: What the store is called.

    Raises:
        ExperimentError: A row is there twice.
    """
    seen: set[int] = set()
    for row, _ in rows:
        if row in seen:
            raise ExperimentError(f"the store {name!r} found chunk {row} twice for one question", rows)
        seen.add(row)
    return list(rows[:k])
