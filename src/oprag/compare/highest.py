"""The highest of several samples of the same questions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, nan

import numpy as np

from oprag.compare.stats.resampling import FloatArray, IntArray

__all__ = ["Scores", "as_arrays", "highest"]

Scores = Mapping[str, float]
"""The score of each question by its key."""


def as_arrays(samples: Sequence[Scores], clusters: Mapping[str, Hashable]) -> tuple[list[FloatArray], IntArray]:
    """The samples over the questions that any of them has, NaN where it has none, and the clusters of the questions."""
    questions = list(dict.fromkeys(question for one in samples for question in one))
    numbers: dict[Hashable, int] = {}
    of_questions = [numbers.setdefault(clusters[question], len(numbers)) for question in questions]
    arrays = [np.array([one.get(question, nan) for question in questions], dtype=np.float64) for one in samples]
    return arrays, np.array(of_questions, dtype=np.int64)


def highest(scores: Sequence[Scores]) -> int:
    """Where the highest sample is: its mean is above that of the most others, over the questions that both have.

    Where all have the same questions, it is the one with the highest mean. Of equal ones it is the first.

    Args:
        scores: The score of each question by its key; at least one sample, each with at least one question.
    """
    means = [fsum(one.values()) / len(one) for one in scores]
    if all(one.keys() == scores[0].keys() for one in scores):
        return max(range(len(scores)), key=means.__getitem__)
    wins = [sum(_difference(one, other) > 0 for other in scores if other is not one) for one in scores]
    return max(range(len(scores)), key=lambda number: (wins[number], means[number]))


def _difference(first: Scores, second: Scores) -> float:
    """The sum over the questions that both have, which is exact: equal samples differ by 0, however they are sorted."""
    both = first.keys() & second.keys()
    return fsum([*(first[key] for key in both), *(-second[key] for key in both)])
