"""Slices: differences by the value of a question field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from oprag.compare.analysis.effects import compare_pooled, pool_pairs
from oprag.compare.analysis.matrix import BoolArray, ResultMatrix
from oprag.compare.stats.difference import Difference
from oprag.compare.stats.resampling import FloatArray, bootstrap_counts
from oprag.options import check_names

__all__ = ["MAX_VALUES", "Slice", "slices_of"]

MAX_VALUES = 8
"""Maximum number of values of a field: text fields with more are not sliced, numbers are split at the median."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Questions with one value of a field, and the difference between two axis values for them.

    Attributes:
        field: Name of the field.
        value: Value of the field; for numbers with many values, a range in words.
        questions: Number of questions with this value.
        other: Axis value that is compared with the baseline.
        baseline: The first value of the axis in the grid, or source order.
        difference: Scores with `other` minus those with `baseline`, averaged for each question over all settings that
            differ only in the axis; corrected for all slices of the field.
        contrast: The difference minus that of all other questions that have the field, with an interval but without a
            p-value, and not corrected for the number of slices. It is needed because a difference shown in one slice
            but not in another does not show that the slices differ. It has no mean if either side has no question.
    """

    field: str
    value: Any
    questions: int
    other: Any
    baseline: Any
    difference: Difference
    contrast: Difference


def slices_of(
    matrix: ResultMatrix,
    field: str,
    metric: str,
    axis: str = "order",
    data: str | None = None,
) -> list[Slice]:
    """Pooled differences between axis values, separately for the questions of each field value.

    Empty if the field has a single value, or is text with more than `MAX_VALUES` values.

    Raises:
        OptionError: No question has the field.
    """
    check_names([field], matrix.field_names, what="field of the questions")
    groups = list(_groups(matrix, field, data))
    if len(groups) < 2:
        return []
    with_field = np.any([inside for _, inside in groups], axis=0)
    pooled = pool_pairs(matrix, metric, axis, data)
    parts = [(one, value, inside) for one in pooled for value, inside in groups]
    differences = compare_pooled(matrix, [np.where(inside, one.apart, np.nan) for one, _, inside in parts])
    return [
        Slice(
            field=field,
            value=value,
            questions=int(inside.sum()),
            other=one.value,
            baseline=matrix.settings[one.pairs[0][0]].values[axis],
            difference=-difference,
            contrast=-_contrast(matrix, np.where(with_field, one.apart, np.nan), inside),
        )
        for (one, value, inside), difference in zip(parts, differences, strict=True)
    ]


def _groups(matrix: ResultMatrix, field: str, data: str | None) -> Iterator[tuple[Any, BoolArray]]:
    """Values of a field, each with a mask of the questions that have it."""
    field_values = [
        fields.get(field) if data in (None, question.data) else None
        for question, fields in zip(matrix.questions, matrix.fields, strict=True)
    ]
    values = dict.fromkeys((type(value), value) for value in field_values if value is not None)
    if len(values) <= MAX_VALUES:
        # Yes before no, and numbers in ascending order.
        ordered = [value for _, value in values]
        if all(isinstance(value, bool) for value in ordered):
            ordered.sort(reverse=True)
        elif not any(isinstance(value, str) for value in ordered):
            ordered.sort()
        for value in ordered:
            yield value, np.array([type(one) is type(value) and one == value for one in field_values])
    elif all(issubclass(kind, int | float) and kind is not bool for kind, _ in values):
        numbers = np.array([np.nan if one is None else one for one in field_values], dtype=np.float64)
        middle = float(np.nanmedian(numbers))
        # NaN compares false on both sides.
        for text, inside in ((f"up to {middle:g}", numbers <= middle), (f"more than {middle:g}", numbers > middle)):
            if inside.any():
                yield text, inside


def _contrast(matrix: ResultMatrix, apart: FloatArray, inside: BoolArray) -> Difference:
    """Mean inside minus mean outside, with a percentile bootstrap over units; a unit may be on both sides."""
    known = ~np.isnan(apart)
    apart, inside = apart[known], inside[known]
    names, units = np.unique(matrix.clusters[known], return_inverse=True)
    count = len(names)
    if not inside.any() or inside.all():
        return Difference(n=len(apart), units=count)
    sums = [np.bincount(units, np.where(part, apart, 0.0), count) for part in (inside, ~inside)]
    sizes = [np.bincount(units, part, count) for part in (inside, ~inside)]
    mean = float(sums[0].sum() / sizes[0].sum() - sums[1].sum() / sizes[1].sum())
    if count < 2:
        return Difference(n=len(apart), mean=mean, units=count)
    # A sample without questions on one side gives NaN, which the quantiles ignore.
    with np.errstate(invalid="ignore"):
        drawn = np.concatenate(
            [
                (counts @ sums[0]) / (counts @ sizes[0]) - (counts @ sums[1]) / (counts @ sizes[1])
                for counts in bootstrap_counts(count, matrix.resamples)
            ]
        )
    tail = (1 - matrix.confidence) / 2
    low, high = map(float, np.nanquantile(drawn, [tail, 1 - tail]))
    return Difference(n=len(apart), mean=mean, low=low, high=high, units=count)
