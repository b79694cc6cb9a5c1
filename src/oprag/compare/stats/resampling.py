"""Resampling: the units that are drawn, random weights for them, and the percentile bootstrap of a mean."""

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
"""Number of samples for every interval, so that one sample of scores has the same interval everywhere."""

_ROUNDING = 1e-12
"""A mean nearer to 0 than this share of the largest value is 0, but for the rounding of a sum."""
_BLOCK = 2**20
"""Maximum number of weights that are made at a time: 8 MB, and as much twice while they are made."""
_PLAIN, _KEPT = 2**22, 2**26
"""Maximum number of weights that are kept for the next call: as they are (32 MB), and with a byte for each (64 MB)."""
_UNPACKED = 2**15
"""Weights that are unpacked at a time: few enough to stay in the cache of a core."""


class Units(NamedTuple):
    """Questions, or clusters of them: each is drawn whole when a sample is drawn again.

    Attributes:
        sums: The sum of the values of each unit, of shape (units,).
        sizes: How many values each has, of shape (units,).
    """

    sums: FloatArray
    sizes: FloatArray

    @property
    def mean(self) -> float:
        """The mean of all values."""
        # Exactly rounded: the mean of the negative is exactly the negative.
        return fsum(self.sums.tolist()) / float(self.sizes.sum())


def units_of(values: FloatArray, clusters: IntArray | None = None) -> Units:
    """The values as units, each its own or all of a cluster together.

    Args:
        values: At least one, none of them NaN.
        clusters: The cluster of each value.

    Returns:
        The units from small to large: equal values in another sequence then give equal results.
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
    """The units or their negative, the same of the two for both, and whether it is the negative.

    What is drawn for it holds for both sides of a comparison, so that turning the sides round turns the result round.
    """
    order = np.lexsort((units.sizes, -units.sums))
    negative = Units(-units.sums[order], units.sizes[order])
    turned = [column.tolist() for column in negative] > [column.tolist() for column in units]
    return (negative, True) if turned else (units, False)


def bootstrap_interval(
    units: Units, confidence: float, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """The ends between which the mean lies with this confidence; None for fewer than two units, or without samples.

    The percentile method (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13): the quantiles
    of the means of samples that are drawn from the units with replacement.
    """
    if len(units.sums) < 2 or not resamples:
        return None
    tail = (1 - confidence) / 2
    units, turned = facing(units)
    low, high = map(float, np.quantile(_resampled_means(units, resamples, seed), [tail, 1 - tail]))
    # Not -0.0, which would be shown with a sign.
    return (0.0 - high, 0.0 - low) if turned else (low, high)


def _resampled_means(units: Units, resamples: int, seed: int) -> FloatArray:
    # With units of several values a sample's mean is the sum of its values over their number, drawn with them.
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


def bootstrap_counts(units: int, resamples: int, seed: int) -> Iterable[FloatArray]:
    """How often each unit is drawn, in blocks of shape (some, units), together `resamples` rows."""
    return _weights(_counted, units, resamples, seed)


def random_signs(units: int, resamples: int, seed: int) -> Iterable[FloatArray]:
    """1 or -1 for each unit by the toss of a coin, in blocks of shape (some, units), together `resamples` rows."""
    return _weights(_tossed, units, resamples, seed)


def sign_patterns(units: int) -> FloatArray:
    """Every way to give each unit 1 or -1, of shape (2 ** units, units)."""
    bits = np.arange(2**units)[:, np.newaxis] >> np.arange(units)
    return np.where(bits & 1, -1.0, 1.0)


Maker = Callable[[np.random.Generator, int, int], FloatArray]


def _counted(generator: np.random.Generator, rows: int, units: int) -> FloatArray:
    drawn = generator.integers(units, size=(rows, units))
    drawn += np.arange(rows)[:, np.newaxis] * units
    return np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def _tossed(generator: np.random.Generator, rows: int, units: int) -> FloatArray:
    return np.where(generator.integers(2, size=(rows, units), dtype=np.int8), 1.0, -1.0)


def _weights(maker: Maker, units: int, resamples: int, seed: int) -> Iterable[FloatArray]:
    if units * resamples > _KEPT:
        return _blocks(maker, units, resamples, seed)
    kept = _kept(maker, units, resamples, seed)
    step = max(1, _UNPACKED // units)
    return (kept[start : start + step].astype(np.float64, copy=False) for start in range(0, resamples, step))


@lru_cache(maxsize=3)
def _kept(maker: Maker, units: int, resamples: int, seed: int) -> NDArray[np.int8] | FloatArray:
    # All cells of a grid are asked the same questions, so the same weights serve them all, and reading them takes a
    # twentieth of making them. A byte is enough: hardly any unit is drawn more than ten times.
    kind = np.float64 if units * resamples <= _PLAIN else np.int8
    return np.concatenate([block.astype(kind, copy=False) for block in _blocks(maker, units, resamples, seed)])


def _blocks(maker: Maker, units: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    generator = np.random.default_rng(seed)
    step = max(1, _BLOCK // units)
    for start in range(0, resamples, step):
        yield maker(generator, min(step, resamples - start), units)
