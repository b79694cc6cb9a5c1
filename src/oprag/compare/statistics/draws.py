"""Random weights for resampling, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["bootstrap_counts", "random_signs", "sign_patterns"]

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
