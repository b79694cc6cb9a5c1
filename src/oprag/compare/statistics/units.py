"""What is drawn when a sample is drawn again: questions, or clusters of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Units", "facing", "units_of"]


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
