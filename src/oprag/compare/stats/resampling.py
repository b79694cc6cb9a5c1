"""Resampling of values: units, random weights, the bootstrap interval of a mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import fsum
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_count

__all__ = [
    "LEAST_RESAMPLES",
    "RESAMPLES",
    "Units",
    "bootstrap_counts",
    "bootstrap_interval",
    "check_resampling",
    "check_scores",
    "facing",
    "finite",
    "random_signs",
    "resampled_means",
    "sign_patterns",
    "units_of",
]


class Units(NamedTuple):
    """Units that are drawn whole.

    Attributes:
        sums: The sum of the values of each unit, of shape (units,).
        sizes: How many values each has, of shape (units,).
    """

    sums: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The mean of all values."""
        # Exactly rounded: the mean of the negative is exactly the negative.
        return fsum(self.sums.tolist()) / float(self.sizes.sum())


def units_of(values: Sequence[float], clusters: Iterable[Hashable] | None) -> Units:
    """The values as units, each its own or all of a cluster together.

    Args:
        values: At least one.
        clusters: The cluster of each value.

    Returns:
        The units from small to large: equal values in another sequence then give equal results.
    """
    if clusters is None:
        sums = np.sort(np.asarray(values, dtype=np.float64))
        return Units(sums, np.ones_like(sums))
    of_cluster: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        of_cluster.setdefault(cluster, []).append(value)
    totals = sorted((fsum(members), len(members)) for members in of_cluster.values())
    sums, sizes = np.array(totals, dtype=np.float64).T
    return Units(sums, sizes)


def facing(units: Units) -> tuple[Units, bool]:
    """The units or their negative, the same of the two for both, and whether it is the negative.

    What is drawn for it holds for both sides of a comparison, so that turning the sides round turns the result round.
    """
    order = np.lexsort((units.sizes, -units.sums))
    negative = Units(-units.sums[order], units.sizes[order])
    turned = [column.tolist() for column in negative] > [column.tolist() for column in units]
    return (negative, True) if turned else (units, False)


Weights = NDArray[np.float64]
"""One row a resample, one column a unit."""

_BLOCK = 2**20
"""The most weights that are made at a time: 8 MB, and as much twice while they are made."""
_KEPT = 2**22
"""The most weights that are kept as they are for the next call: 32 MB."""
_PACKED = 2**26
"""The most weights that are kept with a byte for each: 64 MB. Unpacking them takes a twentieth of making them."""
_LARGEST = 127
_UNPACKED = 2**15
"""Weights that are unpacked at a time: few enough to stay in the cache of a core."""


def bootstrap_counts(units: int, resamples: int, seed: int) -> Iterable[Weights]:
    """How often each unit is drawn, when as many as there are are drawn with replacement.

    Returns:
        Blocks of shape (some, units), together `resamples` rows.
    """
    return _weights(_counted, units, resamples, seed)


def random_signs(units: int, resamples: int, seed: int) -> Iterable[Weights]:
    """1 or -1 for each unit by the toss of a coin.

    Returns:
        Blocks of shape (some, units), together `resamples` rows.
    """
    return _weights(_tossed, units, resamples, seed)


def sign_patterns(units: int) -> Weights:
    """Every way to give each unit 1 or -1, of shape (2 ** units, units)."""
    bits = np.arange(2**units)[:, np.newaxis] >> np.arange(units)
    return np.where(bits & 1, -1.0, 1.0)


Maker = Callable[[np.random.Generator, int, int], Weights]


def _counted(generator: np.random.Generator, rows: int, units: int) -> Weights:
    drawn = generator.integers(units, size=(rows, units))
    drawn += np.arange(rows)[:, np.newaxis] * units
    return np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def _tossed(generator: np.random.Generator, rows: int, units: int) -> Weights:
    return np.where(generator.integers(2, size=(rows, units), dtype=np.int8), 1.0, -1.0)


def _weights(maker: Maker, units: int, resamples: int, seed: int) -> Iterable[Weights]:
    # All cells of a grid are asked the same questions, so the same weights serve them all.
    if units * resamples <= _KEPT:
        return (_kept(maker, units, resamples, seed),)
    if units * resamples <= _PACKED and (packed := _packed(maker, units, resamples, seed)) is not None:
        return _unpacked(packed)
    return _blocks(maker, units, resamples, seed)


@lru_cache(maxsize=3)
def _kept(maker: Maker, units: int, resamples: int, seed: int) -> Weights:
    weights = np.concatenate(list(_blocks(maker, units, resamples, seed)))
    weights.flags.writeable = False
    return weights


@lru_cache(maxsize=2)
def _packed(maker: Maker, units: int, resamples: int, seed: int) -> NDArray[np.int8] | None:
    """The weights with a byte for each; None where one does not fit, as hardly any unit is drawn that often."""
    packed = np.empty((resamples, units), dtype=np.int8)
    start = 0
    for block in _blocks(maker, units, resamples, seed):
        if block.max() > _LARGEST:
            return None
        packed[start : start + len(block)] = block
        start += len(block)
    return packed


def _unpacked(packed: NDArray[np.int8]) -> Iterator[Weights]:
    step = max(1, _UNPACKED // packed.shape[1])
    for start in range(0, len(packed), step):
        yield packed[start : start + step].astype(np.float64)


def _blocks(maker: Maker, units: int, resamples: int, seed: int) -> Iterator[Weights]:
    generator = np.random.default_rng(seed)
    step = max(1, _BLOCK // units)
    for start in range(0, resamples, step):
        yield maker(generator, min(step, resamples - start), units)


_ROUNDING = 1e-12
"""What is nearer to 0 than this share of the largest value is 0, but for the rounding of a sum."""


def bootstrap_interval(units: Units, confidence: float, resamples: int, seed: int) -> tuple[float, float] | None:
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


RESAMPLES = 10_000
"""Number of samples for every interval, so that one sample of scores has the same interval everywhere."""

LEAST_RESAMPLES = 100
"""With fewer the ends of an interval are mere chance."""


def finite(value: Any, where: str) -> float:
    """The value as a float.

    Args:
        value: A score.
        where: Whose score it is, for the message.

    Raises:
        OptionError: It is no finite number. A failed answer has no score: it is left out and counted as failed.
    """
    if not _is_finite(value):
        raise OptionError(
            f"the value of {where} must be a finite number, got {describe(value)}; leave out what failed", value
        )
    return float(value)


def check_scores(scores: Mapping[Any, Any], where: str) -> None:
    """Refuse scores that are not finite numbers, as `finite` does; by their keys, which are described only then."""
    for key, value in scores.items():
        if not _is_finite(value):
            finite(value, f"{describe(key)} {where}")


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        return False


def check_resampling(confidence: Any, resamples: Any, seed: Any) -> None:
    """Refuse options with which no interval can be made.

    Raises:
        OptionError: The confidence is not between 0 and 1, or the others are no whole numbers from 100 and from 0.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise OptionError(f"confidence must be between 0 and 1, such as 0.95, got {describe(confidence)}", confidence)
    check_count("resamples", resamples, optional=False, least=LEAST_RESAMPLES)
    check_count("seed", seed, optional=False, least=0)
