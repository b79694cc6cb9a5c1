"""Reciprocal rank fusion (RRF): fuses several rankings into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["rrf"]

# The constant of the paper; the larger it is, the less the first ranks differ in score.
_CONSTANT = 60


def rrf(rankings: Sequence[Any], count: int) -> NDArray[np.float64]:
    """Return the fused score of each item: the sum of 1 / (60 + rank) over the rankings, with ranks from 1.

    From Cormack, Clarke and Buettcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods" (SIGIR 2009). Uses ranks only, so rankings with scores on different scales can be fused.

    Example:
        >>> rrf([[0, 1], [1, 2]], count=4).round(4).tolist()
        [0.0164, 0.0325, 0.0161, 0.0]
    """
    shares = np.zeros((len(rankings), count))
    for row, ranking in zip(shares, rankings, strict=True):
        row[np.asarray(ranking, dtype=np.intp)] = 1 / (_CONSTANT + 1 + np.arange(len(ranking)))
    # Sum in sorted order, so that items with the same ranks in different rankings tie exactly.
    fused: NDArray[np.float64] = np.sort(shares, axis=0).sum(axis=0)
    return fused
