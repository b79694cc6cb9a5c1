"""Exact match: whether the prediction is a gold answer."""

from __future__ import annotations

from collections.abc import Sequence

from oprag.compare.metrics.given import check_texts
from oprag.compare.metrics.normalization import normalized_words

__all__ = ["exact_match"]


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 where a gold answer has the same words in the same order as the prediction, else 0.

    As in SQuAD (Rajpurkar et al. 2016, arXiv 1606.05250), after `normalized_words`, with one difference: a prediction
    of which normalization leaves nothing ("", "The.") scores 0 whatever the answers are, as it does in `token_f1`.
    So an exact match is never above the F1 of the same answer, and an empty reply is never right.

    Args:
        prediction: What the model answered; may be empty.
        answers: The gold answers, each of them right; one that matches is enough.

    Returns:
        0 or 1.

    Raises:
        OptionError: The prediction is no string, or the answers are no sequence of at least one string.

    Example:
        >>> exact_match("The Bear.", ["wolf", "bear"])
        1.0
    """
    check_texts(prediction, answers)
    words = normalized_words(prediction)
    return float(bool(words) and any(words == normalized_words(answer) for answer in answers))
