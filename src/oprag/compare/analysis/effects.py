"""Order effects, pooled and by setting; and the smallest differences that an experiment can detect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from oprag.chunk import counted
from oprag.compare.analysis.differences import ComparisonFamily, axis_pairs
from oprag.compare.analysis.matrix import ResultMatrix, mean_over
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.metrics.registry import higher_is_better
from oprag.compare.stats.difference import POWER, Difference, detectable_difference
from oprag.compare.stats.resampling import FloatArray

__all__ = ["OrderEffect", "PooledPairs", "compare_pooled", "order_effects", "pool_pairs", "power_of"]


@dataclass(frozen=True, kw_only=True)
class OrderEffect:
    """Difference between source order and another order.

    Attributes:
        order: The other order.
        difference: Source order minus the other order.
        pooled: Whether scores are averaged, for each question, over all pairs of settings that differ only in the
            order.
        values: Values that both settings share; empty if pooled.
        pairs: Number of pairs of settings.
        detectable: Smallest difference that this number of questions is likely to detect; None if nothing differs,
            there are too few questions, or it is not pooled.
    """

    order: Any
    difference: Difference
    pooled: bool
    values: Mapping[str, Any] = field(default_factory=dict)
    pairs: int = 1
    detectable: float | None = None


@dataclass(frozen=True, kw_only=True)
class PooledPairs:
    """Pairs of settings that differ only in the value of an axis.

    Attributes:
        value: Axis value of the second setting of each pair; the first has the baseline value.
        pairs: Numbers of the two settings of each pair.
        apart: First minus second, averaged over all pairs, of shape (questions,); NaN unless all pairs have the
            question.
    """

    value: Any
    pairs: Sequence[tuple[int, int]]
    apart: FloatArray


def pool_pairs(matrix: ResultMatrix, metric: str, axis: str = "order", data: str | None = None) -> list[PooledPairs]:
    """Pair the settings of each axis value with otherwise equal ones of the first value, or of source order.

    The baseline of the axis "order" is always source order; without it, the result is empty. Pairs without common
    questions are dropped.
    """
    values = matrix.setting_values(metric)
    found: dict[Any, list[tuple[int, int]]] = {}
    for one, other in axis_pairs(matrix, axis, data, first="source" if axis == "order" else None):
        if not np.isnan(values[one] - values[other]).all():
            found.setdefault(matrix.settings[other].values[axis], []).append((one, other))
    return [
        PooledPairs(value=value, pairs=pairs, apart=mean_over(np.array([values[i] - values[j] for i, j in pairs])))
        for value, pairs in found.items()
    ]


def compare_pooled(matrix: ResultMatrix, apart: Sequence[FloatArray]) -> list[Difference]:
    """Test the mean of each array against 0, corrected for these arrays only; NaN marks missing questions."""
    zeros = [np.where(np.isnan(one), np.nan, 0.0) for one in apart]
    pairs = [(number, len(apart) + number) for number in range(len(apart))]
    family = ComparisonFamily(matrix, np.array([*apart, *zeros]), pairs)
    return [family.compare(*pair) for pair in pairs]


def order_effects(
    matrix: ResultMatrix, metric: str, data: str | None = None, *, family: ComparisonFamily | None = None
) -> list[OrderEffect]:
    """Source order minus each other order: pooled, and for each pair of settings that differ only in the order.

    Pooled differences are corrected only for one another: whether source order helps is one question, however many
    settings it is tested in. Single pairs have the p-values of their family; without a family they are left out.
    """
    pooled = pool_pairs(matrix, metric, data=data)
    together = compare_pooled(matrix, [one.apart for one in pooled])
    found: list[OrderEffect] = []
    for one, difference in zip(pooled, together, strict=True):
        detectable = detectable_difference(
            one.apart,
            matrix.clusters,
            questions=max(1, difference.n),
            comparisons=len(pooled),
            confidence=matrix.confidence,
        )
        found.append(
            OrderEffect(
                order=one.value, difference=difference, pooled=True, pairs=len(one.pairs), detectable=detectable
            )
        )
        if family is None:
            continue
        for first, second in one.pairs:
            values, others = matrix.settings[first].values, matrix.settings[second].values
            shared = {name: value for name, value in values.items() if name != "order" and others.get(name) == value}
            found.append(
                OrderEffect(order=one.value, values=shared, difference=family.compare(first, second), pooled=False)
            )
    return found


def power_of(matrix: ResultMatrix, questions: Mapping[str, int]) -> Iterator[str]:
    """One sentence with the detectable difference for each data set with enough answers to estimate it.

    It uses the first metric for which higher is better, and the orders if they vary, else the values of the first
    varying axis, pooled over all otherwise equal settings.
    """
    # Data sets have different questions, so they are not compared.
    axes = [name for name in varying_axes(matrix.settings)[0] if name != "data"]
    named = [name for name in matrix.described.get("metrics", ()) if name in matrix.values]
    metric = next((name for name in named if higher_is_better(name, matrix.described)), None)
    axis = "order" if "order" in axes else next(iter(axes), None)
    if metric is None or axis is None:
        return
    for data, asked in questions.items():
        pooled = pool_pairs(matrix, metric, axis, data)
        found = [
            detectable_difference(one.apart, matrix.clusters, questions=asked, comparisons=len(pooled))
            for one in pooled
        ]
        known = [difference for difference in found if difference is not None]
        if known:
            answered = max(int(np.sum(~np.isnan(one.apart))) for one in pooled)
            corrected = f", corrected for {len(pooled):,} comparisons" if len(pooled) > 1 else ""
            yield (
                f"{metric} by {axis}{f' of {data}' if len(questions) > 1 else ''}: with {counted(asked, 'question')}, "
                f"differences of about {float(f'{median(known):.2g}'):,g} or more can be detected (from "
                f"{counted(answered, 'question')} with answers; {100 * POWER:g} % power at 95 %{corrected})"
            )
