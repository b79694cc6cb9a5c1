"""Effects of an axis, pooled over all settings that differ only in it; of all questions, or by the value of a field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from oprag.chunk import counted
from oprag.compare.analysis.differences import ComparisonFamily, axis_pairs
from oprag.compare.analysis.matrix import BoolArray, ResultMatrix, mean_over
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.metrics.registry import higher_is_better
from oprag.compare.stats import ALPHA, POWER, Difference, FloatArray, bootstrap_counts
from oprag.options import check_names

__all__ = ["Effect", "Slice", "effects_of", "power_of", "slices_of"]

Pairs = list[tuple[int, int]]

_MAX_VALUES = 8
"""Maximum number of values of a field: text fields with more are not sliced, numbers are split at the median."""


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


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Questions with one value of a field, and the effect of an axis on them.

    Attributes:
        field: Name of the field.
        value: Value of the field; for numbers with many values, a range in words.
        questions: Number of questions with this value.
        effect: The effect on these questions, corrected for all slices of the field.
        contrast: The difference minus that of all other questions that have the field, with an interval but without a
            p-value, and not corrected for the number of slices. It is needed because a difference shown in one slice
            but not in another does not show that the slices differ. It has no mean if either side has no question.
    """

    field: str
    value: Any
    questions: int
    effect: Effect
    contrast: Difference


def effects_of(matrix: ResultMatrix, metric: str, axis: str = "order", data: str | None = None) -> list[Effect]:
    """The effect of each other value of an axis; pairs of settings without common questions are left out.

    The baseline of the axis "order" is always source order; without it, the result is empty.
    """
    return _tested(matrix, axis, _pooled(matrix, metric, axis, data))


def slices_of(
    matrix: ResultMatrix, field: str, metric: str, axis: str = "order", data: str | None = None
) -> list[Slice]:
    """Effects of an axis, separately for the questions of each value of a field.

    Empty if the field has a single value, or is text with more than eight values.

    Raises:
        OptionError: No question has the field.
    """
    check_names([field], matrix.field_names, what="field of the questions")
    groups = list(_groups(matrix, field, data))
    if len(groups) < 2:
        return []
    with_field = np.any([inside for _, inside in groups], axis=0)
    pooled = _pooled(matrix, metric, axis, data)
    parts = [(pairs, apart, value, inside) for pairs, apart in pooled for value, inside in groups]
    effects = _tested(matrix, axis, [(pairs, np.where(inside, apart, np.nan)) for pairs, apart, _, inside in parts])
    return [
        Slice(
            field=field,
            value=value,
            questions=int(inside.sum()),
            effect=effect,
            contrast=_contrast(matrix, np.where(with_field, apart, np.nan), inside),
        )
        for effect, (_, apart, value, inside) in zip(effects, parts, strict=True)
    ]


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
        effects = [one.difference for one in effects_of(matrix, metric, axis, data)]
        known = [size for one in effects if (size := one.detectable(asked, len(effects))) is not None]
        if known:
            answered = max(one.n for one in effects)
            corrected = f", corrected for {len(effects):,} comparisons" if len(effects) > 1 else ""
            yield (
                f"{metric} by {axis}{f' of {data}' if len(questions) > 1 else ''}: with {counted(asked, 'question')}, "
                f"differences of about {float(f'{median(known):.2g}'):,g} or more can be detected (from "
                f"{counted(answered, 'question')} with answers; {100 * POWER:g} % power at 95 %{corrected})"
            )


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


def _groups(matrix: ResultMatrix, field: str, data: str | None) -> Iterator[tuple[Any, BoolArray]]:
    """Values of a field, each with a mask of the questions that have it."""
    known = [
        fields.get(field) if data in (None, question.data) else None
        for question, fields in zip(matrix.questions, matrix.fields, strict=True)
    ]
    values = [value for value in dict.fromkeys(known) if value is not None]
    if len(values) <= _MAX_VALUES:
        # Yes before no, and numbers in ascending order.
        if not any(isinstance(value, str) for value in values):
            values.sort(reverse=all(isinstance(value, bool) for value in values))
        for value in values:
            yield value, np.array([one == value for one in known])
    elif not any(isinstance(value, bool | str) for value in values):
        numbers = np.array([np.nan if one is None else one for one in known], dtype=np.float64)
        middle = float(np.nanmedian(numbers))
        # NaN compares false on both sides.
        for text, inside in ((f"up to {middle:g}", numbers <= middle), (f"more than {middle:g}", numbers > middle)):
            if inside.any():
                yield text, inside


def _contrast(matrix: ResultMatrix, apart: FloatArray, inside: BoolArray) -> Difference:
    """Mean inside minus mean outside, with a percentile bootstrap over units; a unit may be on both sides."""
    known = ~np.isnan(apart)
    names, units = np.unique(matrix.clusters[known], return_inverse=True)
    sides = [(inside[known] == side).astype(np.float64) for side in (True, False)]
    sums = np.array([np.bincount(units, apart[known] * side, len(names)) for side in sides]).T
    sizes = np.array([np.bincount(units, side, len(names)) for side in sides]).T
    found = Difference(n=int(known.sum()), units=len(names))
    if not sizes.sum(axis=0).all():
        return found

    def contrast(weights: FloatArray) -> FloatArray:
        # A sample without questions on one side gives NaN, which the quantiles ignore.
        with np.errstate(invalid="ignore"):
            means = (weights @ sums) / (weights @ sizes)
        return means[:, 0] - means[:, 1]  # type: ignore[no-any-return]

    found = replace(found, mean=float(contrast(np.ones((1, len(names))))[0]))
    if len(names) < 2:
        return found
    drawn = np.concatenate([contrast(counts) for counts in bootstrap_counts(len(names), matrix.resamples)])
    low, high = map(float, np.nanquantile(drawn, [ALPHA / 2, 1 - ALPHA / 2]))
    return replace(found, low=low, high=high)
