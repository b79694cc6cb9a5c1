"""What tests hold the statistics against, and how they write samples down."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from oprag.compare.stats import FloatArray

Key = TypeVar("Key", bound=Hashable)


def as_pair(first: Mapping[Key, float], second: Mapping[Key, float]) -> tuple[FloatArray, FloatArray]:
    """Two samples by the keys of their questions as arrays, NaN where one has none."""
    keys = dict.fromkeys([*first, *second])
    one, other = (np.array([sample.get(key, np.nan) for key in keys], dtype=np.float64) for sample in (first, second))
    return one, other


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """The p-values of a family of tests as Holm (1979) adjusts them."""
    adjusted: dict[Key, float] = dict.fromkeys(p_values, 1.0)
    so_far = 0.0
    for place, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        so_far = max(so_far, min(1.0, (len(p_values) - place) * float(p_values[key])))
        adjusted[key] = so_far
    return adjusted
