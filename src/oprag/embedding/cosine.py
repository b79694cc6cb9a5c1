"""Validation of vectors, and their cosine similarity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.errors import EmbeddingError

__all__ = ["as_matrix", "as_vectors", "cosine", "fault_in", "first_equals", "top", "unit_rows", "usable_rows"]

# Tolerance for the length of float32 unit vectors.
_UNIT = 1e-6
_NOT_FINITE = "has values that are not finite (NaN or infinity)"


def as_matrix(vectors: Any, count: int, origin: str = "the embedder") -> NDArray[np.float32]:
    """Convert vectors to a new float32 matrix, checked for its shape (`fault_in` checks the values)."""
    expected = f"expected {count} {'vector' if count == 1 else 'vectors'} from {origin}"
    try:
        array = np.asarray(vectors)
        # Values that are too large for float32 become infinite.
        with np.errstate(over="ignore"):
            matrix = array.astype(np.float32, casting="unsafe" if array.dtype.kind in "fiuO" else "no")
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{expected}, got something that is not a matrix of numbers: {error}", vectors) from error
    if matrix.ndim != 2 or len(matrix) != count or not matrix.shape[1]:
        raise EmbeddingError(f"{expected}, got an array of shape {matrix.shape}", vectors)
    return matrix


class Fault(NamedTuple):
    """An invalid row of a matrix of vectors."""

    row: int
    text: str  # the reason, as the predicate of a message


def fault_in(matrix: NDArray[np.float32]) -> Fault | None:
    """The first row that is not finite or all zeros; None if all rows are valid."""
    usable = np.isfinite(matrix).all(axis=1) & matrix.any(axis=1)
    if usable.all():
        return None
    row = int(usable.argmin())
    return Fault(row, _NOT_FINITE if matrix[row].any() else "is all zeros, so it has no cosine similarity")


def usable_rows(vectors: Sequence[Any], owners: Sequence[Any], name_of: Callable[[Any], str]) -> NDArray[np.float32]:
    """Convert vectors to a matrix and check that each has a cosine similarity; an error is about the vector's owner."""
    try:
        matrix = as_matrix(vectors, len(vectors))
        if fault_in(matrix) is None:
            return matrix
    except EmbeddingError:
        pass
    # Check each vector separately, to name the invalid one.
    rows: list[NDArray[np.float32]] = []
    for vector, owner in zip(vectors, owners, strict=True):
        what = f"the vector of {name_of(owner)}"
        try:
            row = as_matrix([vector], 1, name_of(owner))
        except EmbeddingError as error:
            raise EmbeddingError(str(error), owner) from error.__cause__
        if fault := fault_in(row):
            raise EmbeddingError(f"{what} {fault.text}", owner)
        if rows and row.shape != rows[0].shape:
            raise EmbeddingError(
                f"{what} has dimension {row.shape[1]}, that of {name_of(owners[0])} has {rows[0].shape[1]}; vectors "
                "from different embedders cannot be compared",
                owner,
            )
        rows.append(row)
    return np.concatenate(rows)


def as_vectors(vectors: Any, count: int, dimension: int | None = None) -> NDArray[np.float32]:
    """Convert vectors to a new float32 matrix of unit rows; rows of zeros stay zero, so their similarity is 0."""
    if not count and not np.size(vectors):
        return np.zeros((0, dimension or 0), dtype=np.float32)
    matrix = as_matrix(vectors, count)
    if dimension is not None and matrix.shape[1] != dimension:
        raise EmbeddingError(
            f"expected vectors of dimension {dimension}, got {matrix.shape[1]}; "
            "use the embedder that the index was built with",
            vectors,
        )
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise EmbeddingError(f"vector {int(finite.argmin())} of {count} {_NOT_FINITE}", vectors)
    return unit_rows(matrix)


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1, in place; rows of zeros and unit rows stay bit-identical."""
    # In float64, since squares of large or small values exceed the range of float32.
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))[:, None]
    divisors = np.where((norms > 0) & (np.abs(norms - 1) > _UNIT), norms, 1)
    return np.divide(matrix, divisors, out=matrix, casting="same_kind")


def top(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Indices of the k largest scores, largest first; ties by lowest index.

    `argpartition` alone would choose arbitrarily among scores equal to the k-th largest.
    """
    if k < len(scores):
        border = scores[np.argpartition(scores, len(scores) - k)[len(scores) - k]]
        above = np.flatnonzero(scores > border)
        best = np.concatenate([above, np.flatnonzero(scores == border)[: k - len(above)]])
    else:
        best = np.arange(len(scores))
    return best[np.lexsort((best, -scores[best]))]


def first_equals(vectors: NDArray[np.float32]) -> NDArray[np.intp] | None:
    """For each row the index of the first equal row; None if all rows differ.

    In a matrix product, the results of equal rows can differ in the last bit, which would break ties arbitrarily.
    """
    first: dict[bytes, int] = {}
    equals = [first.setdefault(row.tobytes(), index) for index, row in enumerate(vectors)]
    return None if len(first) == len(vectors) else np.array(equals)


def cosine(first: Any, second: Any) -> float:
    """Cosine similarity of two vectors of the same dimension; 0 if one is all zeros."""
    try:
        a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"vectors must be numbers: {error}", first) from error
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise EmbeddingError(f"expected two vectors of the same dimension, got shapes {a.shape} and {b.shape}", first)
    # Exact sums: equal vectors have equal cosines, wherever they are in memory.
    x, y = a.tolist(), b.tolist()
    lengths = math.hypot(*x) * math.hypot(*y)
    if not math.isfinite(lengths):
        raise EmbeddingError(f"one of two vectors {_NOT_FINITE}", (first, second))
    return max(-1.0, min(1.0, math.fsum(map(mul, x, y)) / lengths)) if lengths else 0.0
