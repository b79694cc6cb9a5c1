"""The difference between two ways to answer the same questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oprag.compare.stats.permutation import sign_flip_p_value
from oprag.compare.stats.resampling import RESAMPLES, FloatArray, IntArray, bootstrap_interval, units_of

__all__ = ["FEW_UNITS", "Difference", "paired_difference"]

FEW_UNITS = 10
"""With fewer units than this the interval is clearly too narrow."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """First minus second, over the questions that both have.

    Attributes:
        n: Number of questions that both have.
        mean: The mean difference; None without any.
        low: The lower end of its interval; None with fewer than two units.
        high: Its upper end.
        unpaired: Number of questions that only one of the two has; they are left out.
        p_value: Of the sign-flip test, two-sided; None without questions.
        units: The number of clusters, or of questions if there are none.
        differing: Number of questions with different scores.
        adjusted_p: The p-value, corrected for all comparisons that are judged together; None if the two have no
            question in common, or the same score in every question, and so are not among them.
        comparisons: Number of comparisons that it is corrected for.
        alpha: The p-value below which a difference is shown.
    """

    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    unpaired: int = 0
    p_value: float | None = None
    units: int = 0
    differing: int = 0
    adjusted_p: float | None = None
    comparisons: int = 1
    alpha: float = 0.05

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def tied(self) -> bool:
        """Whether both have the same score in every question."""
        return self.n > 0 and not self.differing

    @property
    def shown(self) -> bool:
        """Whether it is shown that they differ: the interval excludes 0, and the corrected p-value is below alpha."""
        return self.excludes_zero and self.adjusted_p is not None and self.adjusted_p < self.alpha

    @property
    def shown_higher(self) -> bool:
        """Whether the first is shown to be higher."""
        return self.shown and self.low is not None and self.low > 0

    def __str__(self) -> str:
        if self.mean is None:
            return "–"
        if self.low is None or self.high is None:
            return f"{self.mean:+z.3f}"
        return f"{self.mean:+z.3f} [{self.low:+z.3f}, {self.high:+z.3f}]"

    def describe(self) -> str:
        """The difference in one line, with what it lacks."""
        parts = ["no question that both have" if self.mean is None else f"{self}, n = {self.n:,}"]
        if self.mean is not None and self.low is None:
            parts.append("too few for an interval")
        elif self.mean is not None:
            if self.units != self.n:
                parts[0] += f" in {self.units:,} clusters"
            if self.units < FEW_UNITS:
                parts.append("so few that the interval is too narrow")
        if self.unpaired:
            parts.append(f"{self.unpaired:,} without a counterpart")
        return "; ".join(parts)


def paired_difference(
    first: FloatArray,
    second: FloatArray,
    clusters: IntArray | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Difference:
    """The paired difference between the scores of the same questions, with its interval and p-value.

    Questions differ in difficulty far more than two ways to answer them do. The difference is therefore taken for each
    question, and the percentile bootstrap draws questions (or clusters) with both their scores; the interval is then
    much narrower than that of two separate samples.

    With the sides the other way round it is the negative, to the last digit, and the p-value is the same.

    Args:
        first: The score of each question, of shape (questions,); NaN where it has none.
        second: The scores that it is compared with, of the same questions.
        clusters: What each question belongs to, such as its document; questions of one cluster are drawn together.
        confidence: Confidence level of the interval.
        resamples: Number of samples for the interval and the p-value, which cannot fall below 1 / (resamples + 1).
    """
    alpha = round(1 - confidence, 12)  # 1 - 0.95 is a little more than 0.05
    apart = first - second
    both = ~np.isnan(apart)
    unpaired = int(np.sum(np.isnan(first) != np.isnan(second)))
    apart = apart[both]
    if not len(apart):
        return Difference(n=0, unpaired=unpaired, alpha=alpha)
    units = units_of(apart, None if clusters is None else clusters[both])
    low, high = bootstrap_interval(units, confidence, resamples) or (None, None)
    return Difference(
        n=len(apart),
        mean=units.mean,
        low=low,
        high=high,
        unpaired=unpaired,
        p_value=sign_flip_p_value(units, resamples),
        units=len(units.sums),
        differing=int(np.count_nonzero(apart)),
        alpha=alpha,
    )
