"""Cosines of a few vectors, without loading NumPy for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Any

from oprag.errors import EmbeddingError

__all__ = ["cosine"]


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
