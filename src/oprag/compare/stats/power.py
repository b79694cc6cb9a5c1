"""How small a difference a number of questions can show."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np

from oprag.compare.stats.resampling import FloatArray, IntArray, units_of

__all__ = ["POWER", "detectable_difference"]

POWER = 0.8
"""The conventional probability that an existing difference is shown."""


def detectable_difference(
    apart: FloatArray,
    clusters: IntArray | None = None,
    *,
    questions: int,
    comparisons: int = 1,
    confidence: float = 0.95,
) -> float | None:
    """The smallest mean difference that a comparison of a number of questions is likely to show.

    The normal approximation for the mean of paired differences: the standard error times the sum of the quantiles of
    the two-sided level and of `POWER`. Questions of one cluster count together, as they do where intervals are drawn,
    so that it is the spread between clusters that decides. More questions are taken to come in clusters like these.

    Args:
        apart: The known difference of each question, of shape (questions,); NaN where it is not known.
        clusters: What each question belongs to, such as its document, of the same shape.
        questions: Number of questions that will be compared.
        comparisons: Number of comparisons that share the level (Bonferroni, so rather too large than too small).
        confidence: One minus the level.

    Returns:
        None if so few clusters are known, or will be compared, that no difference could be shown, or if all known
        differences are equal.
    """
    known = ~np.isnan(apart)
    apart = apart[known]
    if not len(apart):
        return None
    units = units_of(apart, None if clusters is None else clusters[known])
    count = len(units.sums)
    # The p-value of sign flips cannot fall below 2 / 2^n (`sign_flip_p_value`).
    if 2.0 ** (1 - count * min(1.0, questions / len(apart))) >= 1 - confidence:
        return None
    # The mean is a ratio, since clusters differ in size: of its linearisation.
    residuals = units.sums - units.sizes * units.mean
    error = sqrt(count / (count - 1) * float(np.sum(residuals**2))) / len(apart)
    if not error:
        return None
    quantiles = NormalDist().inv_cdf(1 - (1 - confidence) / comparisons / 2) + NormalDist().inv_cdf(POWER)
    return quantiles * error * sqrt(len(apart) / questions)
