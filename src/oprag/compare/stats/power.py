"""Statistical power: the smallest difference that a number of questions can show."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np

from oprag.compare.stats.resampling import FloatArray, IntArray, units_of

__all__ = ["POWER", "detectable_difference"]

POWER = 0.8
"""The conventional power: the probability that a real difference is shown."""


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
