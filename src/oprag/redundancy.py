"""Finding vectors that repeat a better-ranked one."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Repeats", "find_repeats"]

# Rows that are compared with all kept ones at once: the product of all rows with all would take memory that grows with
# the square of their number.
_BLOCK = 256


class Repeats(NamedTuple):
    """What each row repeats.

    Attributes:
        twins: The kept row that is nearest to a row that goes, and -1 for a row that stays; of shape (rows,).
        cosines: The cosine of a row that goes with its twin; of shape (rows,), 0 for a row that stays.
    """

    twins: NDArray[np.intp]
    cosines: NDArray[np.float32]


def find_repeats(vectors: NDArray[np.float32], threshold: float) -> Repeats:
    """Walk best first; a row goes when its cosine with a row that stays is at least the threshold.

    So the better-ranked of two rows that repeat each other stays, always, and a row that repeats nothing but rows that
    went stays as well. Time grows with rows × kept rows, memory with the rows alone.

    Args:
        vectors: Unit vectors, best first, of shape (rows, dimension).
        threshold: The least cosine that counts as a repeat.
    """
    rows = len(vectors)
    twins = np.full(rows, -1, dtype=np.intp)
    cosines = np.zeros(rows, dtype=np.float32)
    staying = np.empty_like(vectors)
    numbers = np.empty(rows, dtype=np.intp)
    count = 0
    for start in range(0, rows, _BLOCK):
        block = vectors[start : start + _BLOCK]
        twin, cosine = twins[start : start + _BLOCK], cosines[start : start + _BLOCK]
        if count:
            nearest, cosine[:] = _nearest(block, staying[:count])
            twin[:] = np.where(cosine >= threshold, numbers[nearest], -1)
            cosine[twin < 0] = 0
        _compare_within(block, start, threshold, twin, cosine)
        stays = np.flatnonzero(twin < 0)
        staying[count : count + len(stays)] = block[stays]
        numbers[count : count + len(stays)] = start + stays
        count += len(stays)
    return Repeats(twins, cosines)


def _nearest(block: NDArray[np.float32], staying: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """For each row of a block the nearest of other rows, and its cosine."""
    products = block @ staying.T
    nearest = products.argmax(axis=1)
    return nearest, np.take_along_axis(products, nearest[:, None], axis=1)[:, 0]


def _compare_within(
    block: NDArray[np.float32], start: int, threshold: float, twin: NDArray[np.intp], cosine: NDArray[np.float32]
) -> None:
    """Fill in what rows of a block repeat of rows inside of it."""
    products = block @ block.T
    repeats = np.triu(products >= threshold, 1)
    earlier, later = np.nonzero(repeats)
    if not len(earlier):
        return
    # Row by row: whether a row stays is known when all rows before it were looked at. In lists, since one number of an
    # array takes longer than a step of Python.
    twins, cosines = twin.tolist(), cosine.tolist()
    for one, other, nearness in zip(earlier.tolist(), later.tolist(), products[repeats].tolist(), strict=True):
        if twins[one] < 0 and (twins[other] < 0 or nearness > cosines[other]):
            twins[other], cosines[other] = start + one, nearness
    twin[:], cosine[:] = twins, cosines
