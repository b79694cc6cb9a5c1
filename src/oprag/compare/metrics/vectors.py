"""Cosine of answer and reference, as vectors of one embedder."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from oprag.errors import EmbeddingError, OptionError

__all__ = ["answer_cosine"]


def answer_cosine(prediction_vector: Iterable[float], answer_vectors: Iterable[Iterable[float]]) -> float:
    """The cosine of a prediction and of the gold answer that it is nearest to.

    The score of Şakar and Emekci (doi 10.1017/nlp.2024.53). It means something only where one embedder made all the
    vectors of a comparison. An empty text has no vector of meaning: what it scores is for the caller to say.

    Args:
        prediction_vector: The vector of what the model answered, of shape (dimension,).
        answer_vectors: The vectors of the gold answers, of shape (answers, dimension); the best one counts.

    Returns:
        From -1 to 1; 0 where one of the two vectors is all zeros.

    Raises:
        OptionError: There is no answer vector.
        EmbeddingError: The dimensions differ, or a value is no finite number.

    Example:
        >>> answer_cosine([1, 0], [[0, 2], [3, 4]])
        0.6
    """
    prediction = _vector(prediction_vector)
    answers = [_vector(answer) for answer in answer_vectors]
    if not answers:
        raise OptionError("answer_vectors must hold at least one vector, got none", answer_vectors)
    return max(_cosine(prediction, answer) for answer in answers)


def _vector(given: Iterable[float]) -> NDArray[np.float64]:
    try:
        return np.asarray(given if isinstance(given, np.ndarray) else list(given), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"vectors must be numbers: {error}", given) from error


def _cosine(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise EmbeddingError(
            f"expected two vectors of one dimension, got {first.size} and {second.size}", (first.shape, second.shape)
        )
    lengths = math.sqrt(first @ first) * math.sqrt(second @ second)
    if not math.isfinite(lengths):
        raise EmbeddingError("vectors must be finite; the embedder gave NaN or infinity", (first, second))
    return max(-1.0, min(1.0, float(first @ second) / lengths)) if lengths else 0.0
