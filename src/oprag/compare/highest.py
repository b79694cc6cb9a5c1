"""The highest of several samples of the same questions, and which of the others are shown to be lower."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from oprag.compare.statistics import Difference, holm, paired_difference

__all__ = ["Lag", "highest", "lags"]

Scores = Mapping[str, float]

_RESAMPLES = 10_000
_PER_PAIR = 40
"""A p-value is at least 1 / (resamples + 1), which Holm multiplies by the number of differences: at least 0.025."""


class Lag(NamedTuple):
    """How far one sample is behind the highest.

    Attributes:
        difference: The highest minus this one, over the questions that both have.
        adjusted_p: Its p-value among those of all the others, by Holm; None without questions.
        shown: Whether this one is shown to be lower: the interval is above 0, and p is below 1 - confidence.
    """

    difference: Difference
    adjusted_p: float | None
    shown: bool


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


def lags(
    scores: Sequence[Scores],
    place: int,
    *,
    clusters: Mapping[str, Hashable],
    confidence: float,
    resamples: int | None = None,
) -> dict[int, Lag]:
    """How far each of the others is behind the one at a place, by theirs.

    Args:
        scores: The samples.
        place: Where the highest is.
        clusters: What each question belongs to.
        confidence: How often an interval holds the truth.
        resamples: How many samples are drawn; by default 10,000, or so many that a p-value can be below 0.05 behind the
            correction for all differences.

    Raises:
        OptionError: An option cannot be.
    """
    if resamples is None:
        resamples = max(_RESAMPLES, _PER_PAIR * len(scores))
    differences = {
        number: paired_difference(scores[place], other, clusters=clusters, confidence=confidence, resamples=resamples)
        for number, other in enumerate(scores)
        if number != place
    }
    adjusted = holm({number: one.p_value for number, one in differences.items() if one.p_value is not None})
    least = round(1 - confidence, 12)  # 1 - 0.95 is a little more than 0.05
    return {
        number: Lag(
            one, adjusted.get(number), one.low is not None and one.low > 0 and adjusted.get(number, 1.0) < least
        )
        for number, one in differences.items()
    }


def _difference(first: Scores, second: Scores) -> float:
    """The sum over the questions that both have, which is exact: equal samples differ by 0, however they are sorted."""
    both = first.keys() & second.keys()
    return fsum([*(first[key] for key in both), *(-second[key] for key in both)])
