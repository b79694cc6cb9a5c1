"""Exact cosine search: one product of a matrix with a question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.errors import EmbeddingError

__all__ = ["CosineSearch", "cosine", "top"]


class CosineSearch:
    """The cosine of questions with each of the given vectors.

    Args:
        vectors: Unit vectors, of shape (number of chunks, dimension).
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors
        self._equals = _first_equals(vectors)

    def scores(self, questions: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosines, of shape (number of questions, number of chunks).

        Args:
            questions: Unit vectors, of shape (number of questions, dimension).
        """
        product = questions @ self._vectors.T if len(questions) > 1 else (self._vectors @ questions[0])[None]
        return product if self._equals is None else product[:, self._equals]


def top(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """The indices of the k largest scores, largest first; of equal scores the lowest index.

    `argpartition` alone picks any of several equal scores at the border, so these are chosen by index.

    Args:
        scores: Of shape (number of chunks,).
        k: How many; all of them where there are fewer.
    """
    if k < len(scores):
        border = scores[np.argpartition(scores, len(scores) - k)[len(scores) - k]]
        above = np.flatnonzero(scores > border)
        best = np.concatenate([above, np.flatnonzero(scores == border)[: k - len(above)]])
    else:
        best = np.arange(len(scores))
    return best[np.lexsort((best, -scores[best]))]


def _first_equals(vectors: NDArray[np.float32]) -> NDArray[np.intp] | None:
    """For each row the first one that is equal to it; None where all differ.

    A product gives equal rows cosines that differ in the last bit, by the place of the row in the matrix; they tie.
    """
    first: dict[bytes, int] = {}
    equals = [first.setdefault(row.tobytes(), index) for index, row in enumerate(vectors)]
    return None if len(first) == len(vectors) else np.array(equals)


def cosine(first: Iterable[Any], second: Iterable[Any]) -> float:
    """The cosine of two vectors of one dimension; 0 where one has no length.

    Raises:
        EmbeddingError: Their dimensions differ, or a value is no finite number.
    """
    try:
        a, b = _numbers(first), _numbers(second)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"vectors must be numbers: {error}", first) from error
    if len(a) != len(b) or not a:
        raise EmbeddingError(f"expected two vectors of one dimension, got {len(a)} and {len(b)}", (len(a), len(b)))
    lengths = math.hypot(*a) * math.hypot(*b)
    if not math.isfinite(lengths):
        raise EmbeddingError("vectors must be finite; the embedder gave NaN or infinity", (first, second))
    product = math.fsum(map(mul, a, b))
    return max(-1.0, min(1.0, product / lengths)) if lengths else 0.0


def _numbers(vector: Iterable[Any]) -> Sequence[float]:
    # Numbers of NumPy are slow one by one.
    return list(map(float, vector.tolist() if hasattr(vector, "tolist") else vector))
