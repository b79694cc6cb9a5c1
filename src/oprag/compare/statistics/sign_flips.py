"""How often chance alone gives a mean difference as far from 0."""

from __future__ import annotations

import numpy as np

from oprag.compare.statistics.draws import random_signs, sign_patterns
from oprag.compare.statistics.units import Units

__all__ = ["sign_flip_p_value"]

_ROUNDING = 1e-12


def sign_flip_p_value(units: Units, resamples: int, seed: int) -> float:
    """The two-sided p-value of the randomisation test of paired differences (Fisher 1935, "The Design of Experiments").

    If neither side were better, each unit's difference could as well have had the other sign. The p-value is the share
    of sign patterns whose sum is at least as far from 0 as the real one: of all patterns where there are no more than
    `resamples`, else (b + 1) / (resamples + 1) with b of that many random ones (Phipson and Smyth 2010, "Permutation
    p-values should never be zero").

    With n units it cannot fall below 2 / 2^n, however alike they are: six units are the fewest that reach 0.05.
    """
    count = len(units.sums)
    observed = abs(float(units.sums.sum()))
    least = observed - _ROUNDING * float(np.abs(units.sums).sum())
    if 2**count <= resamples:
        return float(np.mean(np.abs(sign_patterns(count) @ units.sums) >= least))
    as_far = sum(int(np.sum(np.abs(signs @ units.sums) >= least)) for signs in random_signs(count, resamples, seed))
    return (as_far + 1) / (resamples + 1)
