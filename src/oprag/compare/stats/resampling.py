"""Resampling: units, their random weights, and the percentile bootstrap of a mean."""

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
    "random_signs",
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


def bootstrap_interval(
    units: Units, confidence: float, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """The confidence interval of the mean; None with fewer than two units, or 0 resamples.

    The percentile method (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13): quantiles of the
    means of samples drawn from the units with replacement.
    """
    if len(units.sums) < 2 or not resamples:
        return None
    tail = (1 - confidence) / 2
    units, turned = facing(units)
    low, high = map(float, np.quantile(_resampled_means(units, resamples, seed), [tail, 1 - tail]))
    # Subtract from 0, since negation could give -0.0, which would be printed with a sign.
    return (0.0 - high, 0.0 - low) if turned else (low, high)


def _resampled_means(units: Units, resamples: int, seed: int) -> FloatArray:
    # If units differ in size, the number of values differs between samples.
    equal_sizes = bool(np.all(units.sizes == units.sizes[0]))
    size = units.sizes.sum()
    means = np.concatenate(
        [
            (counts @ units.sums) / (size if equal_sizes else counts @ units.sizes)
            for counts in bootstrap_counts(len(units.sums), resamples, seed)
        ]
    )
    # Values that cancel out may leave a rounding error, which would have a sign.
    means[np.abs(means) < _ROUNDING * np.abs(units.sums).max()] = 0.0
    return means


def bootstrap_counts(units: int, resamples: int, seed: int) -> Iterable[FloatArray]:
    """The number of times that each unit is drawn, in blocks of shape (rows, units), `resamples` rows in total."""
    return _weights(_draw_counts, units, resamples, seed)


def random_signs(units: int, resamples: int, seed: int) -> Iterable[FloatArray]:
    """A random 1 or -1 for each unit, in blocks of shape (rows, units), `resamples` rows in total."""
    return _weights(_draw_signs, units, resamples, seed)


def sign_patterns(units: int) -> FloatArray:
    """All combinations of signs 1 and -1, of shape (2 ** units, units)."""
    bits = np.arange(2**units)[:, np.newaxis] >> np.arange(units)
    return np.where(bits & 1, -1.0, 1.0)


_Draw = Callable[[np.random.Generator, int, int], FloatArray]


def _draw_counts(generator: np.random.Generator, rows: int, units: int) -> FloatArray:
    indexes = generator.integers(units, size=(rows, units))
    indexes += np.arange(rows)[:, np.newaxis] * units
    return np.bincount(indexes.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def _draw_signs(generator: np.random.Generator, rows: int, units: int) -> FloatArray:
    return np.where(generator.integers(2, size=(rows, units), dtype=np.int8), 1.0, -1.0)


def _weights(draw: _Draw, units: int, resamples: int, seed: int) -> Iterable[FloatArray]:
    if units * resamples > _MAX_CACHED_BYTES:
        return _blocks(draw, units, resamples, seed)
    cached = _cached_weights(draw, units, resamples, seed)
    step = max(1, _UNPACKED // units)
    return (cached[start : start + step].astype(np.float64, copy=False) for start in range(0, resamples, step))


@lru_cache(maxsize=3)
def _cached_weights(draw: _Draw, units: int, resamples: int, seed: int) -> NDArray[np.int8] | FloatArray:
    # All cells of a grid have the same questions, so they share the weights; reading cached weights is 20 times faster
    # than generating them. A byte is enough, since hardly any unit is drawn more than ten times.
    kind = np.float64 if units * resamples <= _MAX_CACHED_FLOATS else np.int8
    return np.concatenate([block.astype(kind, copy=False) for block in _blocks(draw, units, resamples, seed)])


def _blocks(draw: _Draw, units: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    generator = np.random.default_rng(seed)
    step = max(1, _BLOCK // units)
    for start in range(0, resamples, step):
        yield draw(generator, min(step, resamples - start), units)
