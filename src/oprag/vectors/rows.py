"""Vectors as rows of numbers, checked, with a word for where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk
from oprag.errors import EmbeddingError

__all__ = ["Known", "check_rows", "fault_in", "name_of", "rows_of"]


class Known(NamedTuple):
    """A vector, and where it came from.

    Attributes:
        vector: The vector, of shape (dimension,).
        origin: The embedder, the store or the cache, in words for messages.
    """

    vector: NDArray[np.float32]
    origin: str


def rows_of(given: Any, count: int, origin: str, what: str = "vectors") -> NDArray[np.float32]:
    """Vectors as a float32 matrix of shape (count, dimension).

    Raises:
        EmbeddingError: They are of another number, of different dimensions, or no numbers.
    """
    try:
        with np.errstate(over="ignore"):
            rows = np.array(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{origin} gave {what} that form no matrix of numbers: {error}", given) from error
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise EmbeddingError(
            f"{origin} was asked for {count} {'vector' if count == 1 else 'vectors'} and gave an array of shape "
            f"{rows.shape}",
            given,
        )
    return rows


def name_of(value: Chunk | str) -> str:
    """What a vector belongs to, in words."""
    return f"a chunk ({value.label()})" if isinstance(value, Chunk) else "the question"


def check_rows(rows: NDArray[np.float32], values: Sequence[Chunk | str], origin: str) -> None:
    """Refuse vectors that have no cosine.

    Args:
        rows: Vectors, of shape (count, dimension).
        values: The chunk or the question that each belongs to.
        origin: Where they came from.

    Raises:
        EmbeddingError: A vector is not finite, or all zeros.
    """
    if (fault := fault_in(rows)) is not None:
        value = values[fault.row]
        raise EmbeddingError(f"the vector of {name_of(value)} from {origin} {fault.text}", value)


class Fault(NamedTuple):
    """Why a row has no cosine.

    Attributes:
        row: Its number.
        text: What is wrong with it.
    """

    row: int
    text: str


def fault_in(rows: NDArray[np.float32]) -> Fault | None:
    """The first row that has no cosine, None where all of them have one."""
    largest = np.abs(rows).max(axis=1)
    for row in np.flatnonzero(~(np.isfinite(largest) & (largest > 0))).tolist():
        zeros = largest[row] == 0
        return Fault(row, "is all zeros, so it has no cosine" if zeros else "has values that are not finite")
    return None
