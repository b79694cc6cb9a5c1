"""What is drawn when a sample is drawn again: questions, or clusters of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Units", "standard_error", "units_of"]


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
        return float(self.sums.sum() / self.sizes.sum())


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
    totals = sorted((float(np.sum(np.sort(members))), len(members)) for members in of_cluster.values())
    sums, sizes = np.array(totals, dtype=np.float64).T
    return Units(sums, sizes)


def standard_error(units: Units) -> float:
    """The standard error of the mean of at least two units, each of which was drawn whole.

    That of a ratio of two sums (Cochran 1977, "Sampling Techniques", chapter 6): with units of one value each the
    standard deviation over the square root of their number.
    """
    count = len(units.sums)
    residuals = units.sums - units.mean * units.sizes
    return float(np.sqrt(count / (count - 1) * np.sum(residuals**2)) / units.sizes.sum())
