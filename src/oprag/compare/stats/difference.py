"""The paired difference between two settings on the same questions, and the smallest one that questions can show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from oprag.compare.stats.resampling import (
    RESAMPLES,
    FloatArray,
    IntArray,
    bootstrap_interval,
    sign_flip_p_value,
    units_of,
)

__all__ = ["FEW_UNITS", "POWER", "Difference", "detectable_difference", "paired_difference"]

FEW_UNITS = 10
"""With fewer units the interval is clearly too narrow."""
POWER = 0.8
"""The conventional power: the probability that a real difference is shown."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """First minus second setting, over the questions with scores in both.

    Attributes:
        n: Number of questions with scores in both.
        mean: The mean difference; None without questions.
        low: The lower end of its confidence interval; None with fewer than two units.
        high: The upper end of its confidence interval; None with fewer than two units.
        unpaired: Number of questions with a score in only one of the two; they are ignored.
        p_value: Two-sided p-value of the sign-flip test; None without questions.
        units: Number of clusters, or of questions if they are not clustered.
        differing: Number of questions with different scores.
        adjusted_p: The p-value corrected for multiple comparisons; None if it was not corrected, because the two have
            no question in common, or equal scores on every question.
        comparisons: Number of comparisons that the p-value is corrected for.
        alpha: Significance level: a difference is significant only if its corrected p-value is below it.
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
        """Whether the interval does not contain 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def tied(self) -> bool:
        """Whether both have equal scores on every question."""
        return self.n > 0 and not self.differing

    @property
    def significant(self) -> bool:
        """Whether the difference is significant: the interval excludes 0, and the corrected p-value is below alpha."""
        return self.excludes_zero and self.adjusted_p is not None and self.adjusted_p < self.alpha

    @property
    def significantly_higher(self) -> bool:
        """Whether the first is significantly higher."""
        return self.significant and self.low is not None and self.low > 0

    def __neg__(self) -> Difference:
        """Second minus first."""
        if self.mean is None:
            return self
        low, high = (None, None) if self.low is None or self.high is None else (-self.high, -self.low)
        return replace(self, mean=-self.mean, low=low, high=high)

    def __str__(self) -> str:
        if self.mean is None:
            return "–"
        if self.low is None or self.high is None:
            return f"{self.mean:+z.3f}"
        return f"{self.mean:+z.3f} [{self.low:+z.3f}, {self.high:+z.3f}]"

    def describe(self) -> str:
        """The difference in one line, with its limitations."""
        parts = ["no question with scores in both" if self.mean is None else f"{self}, n = {self.n:,}"]
        if self.mean is not None and self.low is None:
            parts.append("too few questions for an interval")
        elif self.mean is not None:
            if self.units != self.n:
                parts[0] += f" in {self.units:,} clusters"
            if self.units < FEW_UNITS:
                parts.append("the interval is too narrow, since there are so few")
        if self.unpaired:
            parts.append(f"{self.unpaired:,} unpaired")
        return "; ".join(parts)


def paired_difference(
    first: FloatArray,
    second: FloatArray,
    clusters: IntArray | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Difference:
    """The paired difference between two score arrays of the same questions, with its interval and p-value.

    Scores vary far more between questions than between settings. The difference is therefore computed per question, and
    the percentile bootstrap resamples questions (or clusters) with both scores. The interval is much narrower than that
    of two independent samples.

    Swapping the two arrays gives exactly the negative difference and interval, and the same p-value.

    Args:
        first: The score of each question, of shape (questions,); NaN if it has none.
        second: The scores to compare with, of the same shape.
        clusters: The cluster of each question, such as its document; questions of a cluster are resampled together.
        confidence: Confidence level of the interval, between 0 and 1.
        resamples: Number of resamples for the interval and the p-value, which is at least 1 / (resamples + 1).
    """
    alpha = round(1 - confidence, 12)  # rounded, since 1 - 0.95 is slightly more than 0.05
    differences = first - second
    both = ~np.isnan(differences)
    unpaired = int(np.sum(np.isnan(first) != np.isnan(second)))
    differences = differences[both]
    if not len(differences):
        return Difference(n=0, unpaired=unpaired, alpha=alpha)
    units = units_of(differences, None if clusters is None else clusters[both])
    low, high = bootstrap_interval(units, confidence, resamples) or (None, None)
    return Difference(
        n=len(differences),
        mean=units.mean,
        low=low,
        high=high,
        unpaired=unpaired,
        p_value=sign_flip_p_value(units, resamples),
        units=len(units.sums),
        differing=int(np.count_nonzero(differences)),
        alpha=alpha,
    )


def detectable_difference(
    apart: FloatArray,
    clusters: IntArray | None = None,
    *,
    questions: int,
    comparisons: int = 1,
    confidence: float = 0.95,
) -> float | None:
    """The smallest mean difference that a comparison of a number of questions is likely to show.

    Normal approximation for the mean of paired differences: the standard error, times the sum of the quantiles of the
    two-sided significance level and of `POWER`. As for intervals, questions of a cluster are one unit, so the variation
    between clusters determines the result. Further questions are assumed to come in similar clusters.

    Args:
        apart: The known difference of each question, of shape (questions,); NaN if unknown.
        clusters: The cluster of each question, such as its document, of the same shape.
        questions: Number of questions that will be compared.
        comparisons: Number of comparisons to correct for (Bonferroni, so the result is rather too large).
        confidence: Confidence level, which is 1 minus the significance level.

    Returns:
        The smallest difference; None if there are, or will be, too few clusters to show any difference, or if all known
        differences are equal.
    """
    known = ~np.isnan(apart)
    apart = apart[known]
    if not len(apart):
        return None
    units = units_of(apart, None if clusters is None else clusters[known])
    count = len(units.sums)
    # The p-value of the sign-flip test is at least 2 / 2^n (`sign_flip_p_value`).
    if 2.0 ** (1 - count * min(1.0, questions / len(apart))) >= 1 - confidence:
        return None
    # Clusters differ in size, so the mean is a ratio estimator: use the residuals of its linearization.
    residuals = units.sums - units.sizes * units.mean
    error = sqrt(count / (count - 1) * float(np.sum(residuals**2))) / len(apart)
    if not error:
        return None
    quantiles = NormalDist().inv_cdf(1 - (1 - confidence) / comparisons / 2) + NormalDist().inv_cdf(POWER)
    return quantiles * error * sqrt(len(apart) / questions)
