"""Permutation tests: p-values of paired differences by sign flips."""

from __future__ import annotations

import numpy as np

from oprag.compare.stats.resampling import RESAMPLES, FloatArray, Units, facing, random_signs, sign_patterns

__all__ = ["max_t_p_values", "sign_flip_p_value"]

_ROUNDING = 1e-12
_BLOCK = 2**21
"""Maximum number of sums that are made at a time: 16 MB."""


def sign_flip_p_value(units: Units, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """The two-sided p-value of the randomisation test of paired differences (Fisher 1935, "The Design of Experiments").

    If neither side were better, each unit's difference could as well have had the other sign. The p-value is the share
    of sign patterns whose sum is at least as far from 0 as the real one: of all patterns where there are no more than
    `resamples`, else (b + 1) / (resamples + 1) with b of that many random ones (Phipson and Smyth 2010, "Permutation
    p-values should never be zero").

    With n units it cannot fall below 2 / 2^n, however alike they are: six units are the fewest that reach 0.05.
    """
    units, _ = facing(units)
    if not units.sums.any():
        return 1.0
    # One comparison alone needs no correction.
    return float(max_t_p_values(units.sums[:, np.newaxis], resamples, seed)[0])


def max_t_p_values(sums: FloatArray, resamples: int = RESAMPLES, seed: int = 0) -> FloatArray:
    """The two-sided p-values of several comparisons of the same units, corrected for all of them together.

    The step-down maxT procedure of Westfall and Young (1993, "Resampling-Based Multiple Testing", chapter 2): all
    comparisons get the same signs, and each is held against the largest of those that are no clearer than it. The
    chance of any wrong claim stays below the threshold, as after Holm's correction, but comparisons that go together,
    such as the same two lengths in three orders, hardly count as several.

    Args:
        sums: The difference of each unit (rows) in each comparison (columns), 0 where it has none; each comparison has
            one that is not 0.
        resamples: Number of random sign patterns, where there are more patterns than that.
        seed: The same seed gives the same p-values.
    """
    count, comparisons = sums.shape
    # Powers of two change no digit, and the squares of what is very small would be 0.
    sums = np.ldexp(sums, -np.frexp(np.abs(sums).max(axis=0))[1])
    # Signs do not change the squares, so that all comparisons are on one scale.
    scaled = sums / np.sqrt(np.sum(sums**2, axis=0))
    observed = np.abs(scaled.sum(axis=0))
    clearest_first = np.argsort(-observed, kind="stable")
    scaled, observed = scaled[:, clearest_first], observed[clearest_first]
    exact = 2**count <= resamples
    as_far = np.zeros(comparisons, dtype=np.int64)
    for signs in [sign_patterns(count)] if exact else random_signs(count, resamples, seed):
        step = max(1, _BLOCK // comparisons)
        for start in range(0, len(signs), step):
            drawn = np.abs(signs[start : start + step] @ scaled)
            largest = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
            as_far += np.sum(largest >= observed - _ROUNDING * count, axis=0)
    stepwise = as_far / 2**count if exact else (as_far + 1) / (resamples + 1)
    found = np.empty(comparisons)
    found[clearest_first] = np.maximum.accumulate(stepwise)
    return found
