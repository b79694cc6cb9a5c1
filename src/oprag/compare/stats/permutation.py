"""Permutation tests: p-values of paired differences from sign flips."""

from __future__ import annotations

import numpy as np

from oprag.compare.stats.resampling import RESAMPLES, FloatArray, Units, facing, random_signs, sign_patterns

__all__ = ["max_t_p_values", "sign_flip_p_value"]

_ROUNDING = 1e-12
_BLOCK = 2**21
"""Maximum number of sums that are computed at a time: 16 MB."""


def sign_flip_p_value(units: Units, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """The two-sided p-value of the randomization test of paired differences (Fisher 1935, "The Design of Experiments").

    Under the null hypothesis each unit's difference could equally well have the opposite sign. The p-value is the share
    of sign patterns whose sum is at least as far from 0 as the observed one. If there are at most `resamples` patterns,
    all of them are used; otherwise the p-value is (b + 1) / (resamples + 1), where b is the number of such patterns
    among `resamples` random ones (Phipson and Smyth 2010, "Permutation p-values should never be zero").

    With n units it is at least 2 / 2^n, so at least six units are needed to reach 0.05.
    """
    units, _ = facing(units)
    if not units.sums.any():
        return 1.0
    # With a single comparison, the correction has no effect.
    return float(max_t_p_values(units.sums[:, np.newaxis], resamples, seed)[0])


def max_t_p_values(sums: FloatArray, resamples: int = RESAMPLES, seed: int = 0) -> FloatArray:
    """The two-sided p-values of several comparisons of the same units, corrected for multiple comparisons.

    The step-down maxT procedure of Westfall and Young (1993, "Resampling-Based Multiple Testing", chapter 2): all
    comparisons get the same random signs, and each is compared with the maximum over all comparisons whose observed
    statistic is not larger. Like Holm's correction it controls the family-wise error rate, but it loses little power on
    correlated comparisons, such as the same two lengths in three orders.

    Args:
        sums: The difference of each unit (rows) in each comparison (columns), 0 if missing; each column must contain a
            nonzero value.
        resamples: Number of random sign patterns, if there are more patterns than this.
        seed: Random seed.
    """
    count, comparisons = sums.shape
    # Scale by a power of two, which is exact, so that the squares of very small values do not underflow.
    sums = np.ldexp(sums, -np.frexp(np.abs(sums).max(axis=0))[1])
    # Normalize each comparison to the same scale; flipping signs does not change the sum of squares.
    scaled = sums / np.sqrt(np.sum(sums**2, axis=0))
    observed = np.abs(scaled.sum(axis=0))
    descending = np.argsort(-observed, kind="stable")
    scaled, observed = scaled[:, descending], observed[descending]
    exact = 2**count <= resamples
    at_least_observed = np.zeros(comparisons, dtype=np.int64)
    for signs in [sign_patterns(count)] if exact else random_signs(count, resamples, seed):
        step = max(1, _BLOCK // comparisons)
        for start in range(0, len(signs), step):
            drawn = np.abs(signs[start : start + step] @ scaled)
            largest = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
            at_least_observed += np.sum(largest >= observed - _ROUNDING * count, axis=0)
    stepwise = at_least_observed / 2**count if exact else (at_least_observed + 1) / (resamples + 1)
    found = np.empty(comparisons)
    found[descending] = np.maximum.accumulate(stepwise)
    return found
