"""Effects of the order: paired differences between source order and each other order, pooled and by setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oprag.compare.analysis.differences import ComparisonFamily, axis_pairs
from oprag.compare.analysis.matrix import ResultMatrix, mean_over
from oprag.compare.stats.difference import Difference
from oprag.compare.stats.power import detectable_difference
from oprag.compare.stats.resampling import FloatArray

__all__ = ["OrderEffect", "PooledPairs", "compare_pooled", "order_effects", "pool_pairs"]


@dataclass(frozen=True, kw_only=True)
class OrderEffect:
    """The difference between source order and another order.

    Attributes:
        order: The other order.
        values: The values that both settings have; those of all settings that are pooled where it is pooled.
        difference: Source order minus the other order.
        pooled: Whether it is the mean, for each question, over all pairs of settings that differ in the order alone.
        pairs: The number of pairs of settings.
        detectable: The smallest difference that this number of questions is likely to show; None if nothing differs,
            there are too few questions, or it is not pooled.
    """

    order: Any
    values: Mapping[str, Any]
    difference: Difference
    pooled: bool
    pairs: int = 1
    detectable: float | None = None


@dataclass(frozen=True, kw_only=True)
class PooledPairs:
    """Pairs of settings that differ in the value of an axis alone.

    Attributes:
        value: The value of the second of each pair; the first has the value that all others are compared with.
        rows: The numbers of the settings of each pair.
        apart: First minus second, averaged over all pairs, of each question that all of them have; else NaN.
    """

    value: Any
    rows: Sequence[tuple[int, int]]
    apart: FloatArray


def pool_pairs(matrix: ResultMatrix, metric: str, axis: str = "order", data: str | None = None) -> list[PooledPairs]:
    """Pair the settings of each value of an axis with those alike of its first value, of orders with source order.

    Pairs without a question in common are left out.

    Args:
        matrix: The results.
        metric: The metric.
        axis: The axis.
        data: The data set; needed where there are several.

    Returns:
        One for each other value; nothing where no setting is in source order.
    """
    values = matrix.setting_values(metric)
    found: dict[Any, list[tuple[int, int]]] = {}
    for one, other in axis_pairs(matrix, axis, data, first="source" if axis == "order" else None):
        if not np.isnan(values[one] - values[other]).all():
            found.setdefault(matrix.settings[other].values[axis], []).append((one, other))
    return [
        PooledPairs(
            value=value, rows=pairs, apart=mean_over(np.array([values[one] - values[other] for one, other in pairs]))
        )
        for value, pairs in found.items()
    ]


def compare_pooled(matrix: ResultMatrix, apart: Sequence[FloatArray]) -> list[Difference]:
    """Differences from 0 of the mean of each array, corrected for each other alone; NaN where a question has none."""
    none = [np.where(np.isnan(one), np.nan, 0.0) for one in apart]
    pairs = [(number, len(apart) + number) for number in range(len(apart))]
    family = ComparisonFamily(
        np.array([*apart, *none]),
        matrix.clusters,
        pairs,
        confidence=matrix.confidence,
        resamples=matrix.resamples,
    )
    return [family.compare(*pair) for pair in pairs]


def order_effects(
    matrix: ResultMatrix, metric: str, data: str | None = None, *, family: ComparisonFamily | None = None
) -> list[OrderEffect]:
    """Source order minus each other order: pooled, and for each pair of settings that differ in the order alone.

    Pooled differences are corrected for each other alone: whether source order helps is one question, however many
    settings it is asked in. Single pairs have the p-values that they have everywhere.

    Args:
        matrix: The results.
        metric: The metric.
        data: The data set; needed where there are several.
        family: The comparisons that single pairs are corrected for; without it, there are pooled differences alone.

    Returns:
        For each other order the pooled difference, then the single ones; nothing where source order was not compared.
    """
    pooled = pool_pairs(matrix, metric, data=data)
    together = compare_pooled(matrix, [one.apart for one in pooled])
    found: list[OrderEffect] = []
    for one, difference in zip(pooled, together, strict=True):
        shared = [_shared(matrix, *pair) for pair in one.rows]
        always = {name: value for name, value in shared[0].items() if all(other.get(name) == value for other in shared)}
        detectable = detectable_difference(
            one.apart,
            matrix.clusters,
            questions=max(1, difference.n),
            comparisons=len(pooled),
            confidence=matrix.confidence,
        )
        found.append(
            OrderEffect(
                order=one.value,
                values=always,
                difference=difference,
                pooled=True,
                pairs=len(one.rows),
                detectable=detectable,
            )
        )
        if family is not None:
            found += [
                OrderEffect(
                    order=one.value,
                    values=there,
                    difference=family.compare(first, second),
                    pooled=False,
                )
                for (first, second), there in zip(one.rows, shared, strict=True)
            ]
    return found


def _shared(matrix: ResultMatrix, first: int, second: int) -> dict[str, Any]:
    one, other = matrix.settings[first].values, matrix.settings[second].values
    return {name: value for name, value in one.items() if name != "order" and other.get(name) == value}
