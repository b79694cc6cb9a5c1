"""The percentile bootstrap of a mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oprag.compare.statistics.draws import bootstrap_counts
from oprag.compare.statistics.units import Units, facing

__all__ = ["interval", "resampled_means"]

_ROUNDING = 1e-12
"""What is nearer to 0 than this share of the largest value is 0, but for the rounding of a sum."""


def interval(units: Units, confidence: float, resamples: int, seed: int) -> tuple[float, float] | None:
    """The ends between which the mean lies with this confidence; None for fewer than two units.

    The percentile method (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13): the quantiles
    of the means of samples that are drawn from the units with replacement.
    """
    if len(units.sums) < 2:
        return None
    tail = (1 - confidence) / 2
    units, turned = facing(units)
    low, high = map(float, np.quantile(resampled_means(units, resamples, seed), [tail, 1 - tail]))
    # Not -0.0, which would be shown with a sign.
    return (0.0 - high, 0.0 - low) if turned else (low, high)


def resampled_means(units: Units, resamples: int, seed: int) -> NDArray[np.float64]:
    """The means of samples drawn from the units with replacement, of shape (resamples,).

    With units of several values a sample's mean is the sum of its values over their number, which is drawn with them.
    """
    alike = bool(np.all(units.sizes == units.sizes[0]))
    size = units.sizes.sum()
    means = np.concatenate(
        [
            (counts @ units.sums) / (size if alike else counts @ units.sizes)
            for counts in bootstrap_counts(len(units.sums), resamples, seed)
        ]
    )
    # Values that cancel out would otherwise leave a last bit that has a sign.
    means[np.abs(means) < _ROUNDING * np.abs(units.sums).max()] = 0.0
    return means
