"""Token F1: how many words prediction and gold answer have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oprag.compare.metrics.given import check_texts
from oprag.compare.metrics.normalization import normalized_words

__all__ = ["token_f1"]


def token_f1(prediction: str, answers: Sequence[str]) -> float:
    """The F1 of the words of a prediction and of the gold answer that it is nearest to.

    2 · precision · recall / (precision + recall) over the words of both, each counted as often as it occurs, after
    `normalized_words`: `qa_f1_score` of ∞Bench (`src/compute_scores.py`), which is SQuAD's.

    Where nothing is left of the prediction or of an answer after normalization, their F1 is 0, also where nothing is
    left of both, as in ∞Bench and SQuAD 1.1 (SQuAD 2.0 gives 1 there). Words are split at white space, so the function
    is not meant for languages that write none.

    Args:
        prediction: What the model answered; may be empty.
        answers: The gold answers, each of them right; the best one counts.

    Returns:
        From 0 to 1.

    Raises:
        OptionError: The prediction is no string, or the answers are no sequence of at least one string.

    Example:
        >>> token_f1("the old brown bear", ["a bear", "brown bears"])
        0.5
    """
    check_texts(prediction, answers)
    words = normalized_words(prediction)
    return max(_f1(words, normalized_words(answer)) for answer in answers)


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    common = (Counter(words) & Counter(gold)).total()
    if not common:
        return 0.0
    # In these steps, as the reference has them, so that not even the last bit differs.
    precision, recall = common / len(words), common / len(gold)
    return 2 * precision * recall / (precision + recall)
