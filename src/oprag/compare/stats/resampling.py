"""Resampling: units, their random weights, the percentile bootstrap of a mean, and p-values from sign flips."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RESAMPLES",
    "FloatArray",
    "IntArray",
    "Units",
    "bootstrap_counts",
    "bootstrap_interval",
    "by_cluster",
    "facing",
    "max_t_p_values",
    "random_signs",
    "sign_flip_p_value",
    "sign_patterns",
    "units_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RESAMPLES = 10_000
"""Default number of resamples, the same everywhere, so that the same scores always have the same interval."""

_ROUNDING = 1e-12
"""A mean below this share of the largest value is a rounding error of 0."""
_BLOCK = 2**20
"""Maximum number of weights that are generated at a time: 8 MB, and 24 MB while they are generated."""
_SUMS_BLOCK = 2**21
"""Maximum number of sums that are computed at a time: 16 MB."""
_MAX_CACHED_FLOATS, _MAX_CACHED_BYTES = 2**22, 2**26
"""Maximum number of weights that are cached: as 64-bit floats (32 MB), or else with a byte for each (64 MB)."""
_UNPACKED = 2**15
"""Number of weights that are converted to floats at a time: few enough for the CPU cache."""


class Units(NamedTuple):
    """The units of resampling: questions, or clusters of questions that are resampled together.

    Attributes:
        sums: The sum of the values of each unit, of shape (units,).
        sizes: The number of values of each unit, of shape (units,).
    """

    sums: FloatArray
    sizes: FloatArray

    @property
    def mean(self) -> float:
        """The mean of all values."""
        # fsum is exactly rounded, so that the mean of negated values is exactly the negative.
        return fsum(self.sums.tolist()) / float(self.sizes.sum())


def units_of(values: FloatArray, clusters: IntArray | None = None) -> Units:
    """Group values into units: one per cluster, or one per value without clusters.

    Args:
        values: One or more values without NaN.
        clusters: The cluster of each value.

    Returns:
        The units in ascending order, so that results do not depend on the order of the values.
    """
    if clusters is None:
        sums = np.sort(values)
        return Units(sums, np.ones_like(sums))
    totals = sorted((fsum(some), len(some)) for some in by_cluster(values, clusters).values())
    sums, sizes = np.array(totals, dtype=np.float64).T
    return Units(sums, sizes)


def by_cluster(values: FloatArray, clusters: IntArray) -> dict[int, list[float]]:
    """The values of each cluster."""
    members: dict[int, list[float]] = {}
    for value, cluster in zip(values.tolist(), clusters.tolist(), strict=True):
        members.setdefault(cluster, []).append(value)
    return members


def facing(units: Units) -> tuple[Units, bool]:
    """A canonical choice between the units and their negative, and whether it is the negative.

    Units and their negative get the same choice and therefore the same resamples, so that swapping the two sides of a
    comparison exactly negates the result.
    """
    order = np.lexsort((units.sizes, -units.sums))
    negative = Units(-units.sums[order], units.sizes[order])
    turned = [column.tolist() for column in negative] > [column.tolist() for column in units]
    return (negative, True) if turned else (units, False)


def bootstrap_interval(units: Units, confidence: float, resamples: int = RESAMPLES) -> tuple[float, float] | None:
    """The confidence interval of the mean; None with fewer than two units, or 0 resamples.

    The percentile method (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13): quantiles of the
    means of samples drawn from the units with replacement.
    """
    if len(units.sums) < 2 or not resamples:
        return None
    tail = (1 - confidence) / 2
    units, turned = facing(units)
    low, high = map(float, np.quantile(_resampled_means(units, resamples), [tail, 1 - tail]))
    # Subtract from 0, since negation could give -0.0, which would be printed with a sign.
    return (0.0 - high, 0.0 - low) if turned else (low, high)


def _resampled_means(units: Units, resamples: int) -> FloatArray:
    # If units differ in size, the number of values differs between samples.
    equal_sizes = bool(np.all(units.sizes == units.sizes[0]))
    size = units.sizes.sum()
    means = np.concatenate(
        [
            (counts @ units.sums) / (size if equal_sizes else counts @ units.sizes)
            for counts in bootstrap_counts(len(units.sums), resamples)
        ]
    )
    # Values that cancel out may leave a rounding error, which would have a sign.
    means[np.abs(means) < _ROUNDING * np.abs(units.sums).max()] = 0.0
    return means


def bootstrap_counts(units: int, resamples: int) -> Iterable[FloatArray]:
    """The number of times that each unit is drawn, in blocks of shape (rows, units), `resamples` rows in total."""
    return _weights(_draw_counts, units, resamples)


def random_signs(units: int, resamples: int) -> Iterable[FloatArray]:
    """A random 1 or -1 for each unit, in blocks of shape (rows, units), `resamples` rows in total."""
    return _weights(_draw_signs, units, resamples)


def sign_patterns(units: int) -> FloatArray:
    """All combinations of signs 1 and -1, of shape (2 ** units, units)."""
    bits = np.arange(2**units)[:, np.newaxis] >> np.arange(units)
    return np.where(bits & 1, -1.0, 1.0)


def sign_flip_p_value(units: Units, resamples: int = RESAMPLES) -> float:
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
    return float(max_t_p_values(units.sums[:, np.newaxis], resamples)[0])


def max_t_p_values(sums: FloatArray, resamples: int = RESAMPLES) -> FloatArray:
    """The two-sided p-values of several comparisons of the same units, corrected for multiple comparisons.

    The step-down maxT procedure of Westfall and Young (1993, "Resampling-Based Multiple Testing", chapter 2): all
    comparisons get the same random signs, and each is compared with the maximum over all comparisons whose observed
    statistic is not larger. Like Holm's correction it controls the family-wise error rate, but it loses little power on
    correlated comparisons, such as the same two lengths in three orders.

    Args:
        sums: The difference of each unit (rows) in each comparison (columns), 0 if missing; each column must contain a
            nonzero value.
        resamples: Number of random sign patterns, if there are more patterns than this.
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
    for signs in [sign_patterns(count)] if exact else random_signs(count, resamples):
        step = max(1, _SUMS_BLOCK // comparisons)
        for start in range(0, len(signs), step):
            drawn = np.abs(signs[start : start + step] @ scaled)
            largest = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
            at_least_observed += np.sum(largest >= observed - _ROUNDING * count, axis=0)
    stepwise = at_least_observed / 2**count if exact else (at_least_observed + 1) / (resamples + 1)
    found = np.empty(comparisons)
    found[descending] = np.maximum.accumulate(stepwise)
    return found


_Draw = Callable[[np.random.Generator, int, int], FloatArray]


def _draw_counts(generator: np.random.Generator, rows: int, units: int) -> FloatArray:
    indexes = generator.integers(units, size=(rows, units))
    indexes += np.arange(rows)[:, np.newaxis] * units
    return np.bincount(indexes.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def _draw_signs(generator: np.random.Generator, rows: int, units: int) -> FloatArray:
    return np.where(generator.integers(2, size=(rows, units), dtype=np.int8), 1.0, -1.0)


def _weights(draw: _Draw, units: int, resamples: int) -> Iterable[FloatArray]:
    if units * resamples > _MAX_CACHED_BYTES:
        return _blocks(draw, units, resamples)
    cached = _cached_weights(draw, units, resamples)
    step = max(1, _UNPACKED // units)
    return (cached[start : start + step].astype(np.float64, copy=False) for start in range(0, resamples, step))


@lru_cache(maxsize=3)
def _cached_weights(draw: _Draw, units: int, resamples: int) -> NDArray[np.int8] | FloatArray:
    # All cells of a grid have the same questions, so they share the weights; reading cached weights is 20 times faster
    # than generating them. A byte is enough, since hardly any unit is drawn more than ten times.
    kind = np.float64 if units * resamples <= _MAX_CACHED_FLOATS else np.int8
    return np.concatenate([block.astype(kind, copy=False) for block in _blocks(draw, units, resamples)])


def _blocks(draw: _Draw, units: int, resamples: int) -> Iterator[FloatArray]:
    generator = np.random.default_rng(0)
    step = max(1, _BLOCK // units)
    for start in range(0, resamples, step):
        yield draw(generator, min(step, resamples - start), units)
