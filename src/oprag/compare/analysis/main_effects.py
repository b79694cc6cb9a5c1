"""Effects of an axis, pooled over all settings that differ only in it; of all questions, or by the value of a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oprag.compare.analysis.differences import ComparisonFamily, axis_pairs
from oprag.compare.analysis.matrix import ResultMatrix, mean_over
from oprag.compare.stats import Difference, FloatArray
from oprag.options import check_names

__all__ = ["Effect", "effects_of", "slices_of"]

Pairs = list[tuple[int, int]]

_MAX_VALUES = 8
"""Maximum number of values of a field: fields with more are not sliced."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Difference between two values of an axis, averaged for each question over all otherwise equal settings.

    Attributes:
        value: Value of the axis.
        baseline: The value it is compared with: source order, or the first value in the grid.
        pairs: Numbers of the settings of each pair, first the one with the baseline value.
        difference: Scores with the value minus those with the baseline, for questions that all pairs have. It is
            corrected only for the other values of the axis: whether order matters is one question, however many
            settings it is tested in.
    """

    value: Any
    baseline: Any
    pairs: Sequence[tuple[int, int]]
    difference: Difference


def effects_of(matrix: ResultMatrix, metric: str, axis: str = "order", data: str | None = None) -> list[Effect]:
    """The effect of each other value of an axis; pairs of settings without common questions are left out.

    The baseline of the axis "order" is always source order; without it, the result is empty.
    """
    return _tested(matrix, axis, _pooled(matrix, metric, axis, data))


def slices_of(
    matrix: ResultMatrix, field: str, metric: str, axis: str = "order", data: str | None = None
) -> dict[Any, list[Effect]]:
    """Effects of an axis on the questions with each value of a field, corrected for all of them.

    Empty if the field has a single value, or more than eight.

    Raises:
        OptionError: No question has the field.
    """
    check_names([field], matrix.field_names, what="field of the questions")
    known = [
        fields.get(field) if data in (None, question.data) else None
        for question, fields in zip(matrix.questions, matrix.fields, strict=True)
    ]
    values = [value for value in dict.fromkeys(known) if value is not None]
    if not 1 < len(values) <= _MAX_VALUES:
        return {}
    # Yes before no, and numbers in ascending order.
    if not any(isinstance(value, str) for value in values):
        values.sort(reverse=all(isinstance(value, bool) for value in values))
    groups = [np.array([one == value for one in known]) for value in values]
    pooled = _pooled(matrix, metric, axis, data)
    parts = [(pairs, np.where(inside, apart, np.nan)) for inside in groups for pairs, apart in pooled]
    effects = _tested(matrix, axis, parts)
    return {value: effects[place * len(pooled) :][: len(pooled)] for place, value in enumerate(values)}


def _pooled(matrix: ResultMatrix, metric: str, axis: str, data: str | None) -> list[tuple[Pairs, FloatArray]]:
    """For each other value of an axis, the pairs of settings, and their mean difference in each question."""
    values = matrix.setting_values(metric)
    found: dict[Any, Pairs] = {}
    for one, other in axis_pairs(matrix, axis, data, first="source" if axis == "order" else None):
        if not np.isnan(values[other] - values[one]).all():
            found.setdefault(matrix.settings[other].values[axis], []).append((one, other))
    return [
        (pairs, mean_over(np.array([values[other] - values[one] for one, other in pairs]))) for pairs in found.values()
    ]


def _tested(matrix: ResultMatrix, axis: str, pooled: Sequence[tuple[Pairs, FloatArray]]) -> list[Effect]:
    """Test each mean difference against 0, corrected together."""
    rows = [apart for _, apart in pooled]
    rows += [np.where(np.isnan(apart), np.nan, 0.0) for _, apart in pooled]
    family = ComparisonFamily(matrix, np.array(rows), [(place, len(pooled) + place) for place in range(len(pooled))])
    return [
        Effect(
            value=matrix.settings[pairs[0][1]].values[axis],
            baseline=matrix.settings[pairs[0][0]].values[axis],
            pairs=pairs,
            difference=family.compare(place, len(pooled) + place),
        )
        for place, (pairs, _) in enumerate(pooled)
    ]
