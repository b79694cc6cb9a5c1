"""Cosine of answer and reference, as vectors of one embedder."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

from oprag.embedding.cosine import cosine
from oprag.errors import OptionError

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
    prediction: Any = prediction_vector if isinstance(prediction_vector, Sized) else list(prediction_vector)
    cosines = [cosine(prediction, answer) for answer in answer_vectors]
    if not cosines:
        raise OptionError("answer_vectors must hold at least one vector, got none", answer_vectors)
    return max(cosines)
