"""Differences between settings and between values of an axis, with p-values that are corrected together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from oprag.compare.analysis.settings import ORDERED_AXES, by_data, curves_along, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.metrics.registry import higher_is_better
from oprag.compare.stats import Difference, FloatArray, by_cluster, max_t_p_values, mean_over, paired_difference
from oprag.errors import ExperimentError, OptionError
from oprag.options import check_names

if TYPE_CHECKING:
    from oprag.compare.analysis.matrix import ResultMatrix

__all__ = [
    "ComparisonFamily",
    "Effect",
    "SettingDifference",
    "axis_pairs",
    "changes_since",
    "compared",
    "effects_of",
    "family_of",
    "highest",
    "slices_of",
]


@dataclass(frozen=True, kw_only=True)
class SettingDifference:
    """Score difference between a setting and its baseline.

    Attributes:
        metric: Name of the metric.
        setting: The setting.
        baseline: The setting it is compared with.
        difference: Scores of the setting minus those of the baseline, over the questions that both have. Its
            `adjusted_p` is corrected for all comparisons of the experiment in this metric.
        axis: Axis in which the two differ; the baseline has the first value. None if `setting` is the highest setting,
            which is compared with all others.
    """

    metric: str
    setting: SettingSummary
    baseline: SettingSummary
    difference: Difference
    axis: str | None = None


def compared(
    setting: SettingSummary, baseline: SettingSummary, metric: str, axis: str | None = None
) -> SettingDifference:
    """A setting compared with another one of the same results."""
    difference = setting.matrix.family(metric).compare(setting.number, baseline.number)
    return SettingDifference(metric=metric, setting=setting, baseline=baseline, difference=difference, axis=axis)


class ComparisonFamily:
    """Comparisons whose p-values are corrected together (`max_t_p_values`), of numbered settings.

    Each pair of scores counts once, however many settings share these scores, and not at all if it never differs.
    """

    def __init__(self, matrix: ResultMatrix, scores: FloatArray, pairs: Iterable[tuple[int, int]]) -> None:
        self._matrix = matrix
        self._scores = scores
        self._cached: dict[tuple[int, int], Difference] = {}
        # Rows are compared as bytes, so -0 is normalized to 0, and all NaNs to the same one.
        numbers: dict[bytes, int] = {}
        contents = (np.where(np.isnan(row), np.nan, row + 0.0).tobytes() for row in scores)
        self._contents = [numbers.setdefault(content, len(numbers)) for content in contents]
        compared: dict[frozenset[int], dict[int, float]] = {}
        for first, second in pairs:
            key = frozenset(self._key(first, second))
            if key not in compared:
                compared[key] = self._by_unit(first, second)
        # Random signs are drawn per unit in this order, which includes units of comparisons without any difference.
        units = {unit: row for row, unit in enumerate(dict.fromkeys(chain(*compared.values())))}
        compared = {key: sums for key, sums in compared.items() if any(sums.values())}
        table = np.zeros((len(units), len(compared)))
        for column, sums in enumerate(compared.values()):
            for unit, value in sums.items():
                table[units[unit], column] = value
        corrected = max_t_p_values(table, matrix.resamples).tolist() if compared else []
        self._adjusted: dict[frozenset[int], float] = dict(zip(compared, corrected, strict=True))

    @property
    def comparisons(self) -> int:
        """Number of comparisons that p-values are corrected for."""
        return len(self._adjusted)

    def compare(self, first: int, second: int) -> Difference:
        """Scores of the first setting minus those of the second, for a pair of this family."""
        key = self._key(first, second)
        if key not in self._cached:
            found = paired_difference(
                self._scores[first],
                self._scores[second],
                self._matrix.clusters,
                resamples=self._matrix.resamples,
            )
            adjusted = self._adjusted.get(frozenset(key))
            if adjusted is not None and found.p_value is not None:
                # The two use different random signs, so the single p-value can be slightly larger.
                adjusted = max(adjusted, found.p_value)
            self._cached[key] = replace(found, adjusted_p=adjusted, comparisons=self.comparisons)
        return self._cached[key]

    def _key(self, first: int, second: int) -> tuple[int, int]:
        return self._contents[first], self._contents[second]

    def _by_unit(self, first: int, second: int) -> dict[int, float]:
        """Difference summed over each unit, which is a cluster of questions."""
        apart = self._scores[first] - self._scores[second]
        both = ~np.isnan(apart)
        found = by_cluster(apart[both], self._matrix.clusters[both])
        return {unit: fsum(values) for unit, values in found.items()}


def family_of(matrix: ResultMatrix, metric: str) -> ComparisonFamily:
    """All comparisons of an experiment in one metric, so that a pair has the same p-value wherever it appears.

    Each axis value with the first one, all else equal; and the highest setting of each data set, and the highest point
    of each curve, with the others. The highest is picked by its scores, so a single comparison with it proves little; a
    best setting or a sweet spot needs p < 0.05 in all, which happens by chance in at most one of twenty experiments.
    """
    pairs = [pair for axis in varying_axes(matrix.settings) for pair in axis_pairs(matrix, axis)]
    if higher_is_better(metric, matrix.described):
        scored = [one for one in matrix.settings if metric in one.scores]
        groups = list(by_data(scored).values())
        for axis in varying_axes(scored):
            groups += [along for _, along in curves_along(scored, axis)] if axis in ORDERED_AXES else []
        for members in groups:
            top = highest(members, metric)
            pairs += [(top.number, other.number) for other in members if other is not top]
    return ComparisonFamily(matrix, matrix.setting_values(metric), pairs)


def highest(settings: Sequence[SettingSummary], metric: str) -> SettingSummary:
    """The setting whose mean is above that of most others, over the questions that both have; on ties, the first."""
    if not settings:
        raise OptionError(f"no setting has scores for {metric!r} in all of its runs", metric)
    scores = np.array([one.by_question(metric) for one in settings])
    # Rounded, so that equal scores in another order are a tie.
    wins = [int(np.sum(np.nansum(one - scores, axis=1).round(9) > 0)) for one in scores]
    means = np.nanmean(scores, axis=1).round(9).tolist()
    return settings[max(range(len(settings)), key=lambda number: (wins[number], means[number]))]


def axis_pairs(
    matrix: ResultMatrix, axis: str, data: str | None = None, *, first: Any = None
) -> Iterator[tuple[int, int]]:
    """Numbers of settings that differ in one axis: one with its first value in the grid (or `first`) and another."""
    settings = [one for one in matrix.settings if axis in one.values and data in (None, one.values["data"])]
    if first is None:
        present = [one.values[axis] for one in settings]
        first = next((value for value in [*matrix.grid[axis], *present] if value in present), None)
    baselines = [one for one in settings if one.values[axis] == first]
    for other in settings:
        for one in baselines if other.values[axis] != first else ():
            if all(other.values.get(name, value) == value for name, value in one.values.items() if name != axis):
                yield one.number, other.number


def changes_since(new: ResultMatrix, old: ResultMatrix, metric: str) -> list[SettingDifference]:
    """New minus old scores (`baseline`) of the settings in both results, over questions that are the same in both."""
    columns = {question.key: column for column, question in enumerate(old.questions)}
    same = [(one, other) for one in new.settings for other in old.settings if one.values == other.values]
    if not same:
        raise ExperimentError(
            f"the results of {old.experiment!r} have no setting of {new.experiment!r}", old.experiment
        )
    before = np.full((len(same), len(new.questions)), np.nan)
    for column, question in enumerate(new.questions):
        if question.key in columns:
            before[:, column] = [other.by_question(metric)[columns[question.key]] for _, other in same]
    both = np.concatenate([[one.by_question(metric) for one, _ in same], before])
    if np.isnan(both[: len(same)] - before).all():
        raise ExperimentError(f"no question has scores for {metric} in both results", metric)
    pairs = [(number, len(same) + number) for number in range(len(same))]
    family = ComparisonFamily(new, both, pairs)
    return [
        SettingDifference(metric=metric, setting=one, baseline=other, difference=family.compare(*pair))
        for (one, other), pair in zip(same, pairs, strict=True)
    ]


Pairs = list[tuple[int, int]]

_MAX_VALUES = 8  # of a field: fields with more are not sliced


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
    """The effect of each other value of an axis; of orders compared with source order, if there is a pair."""
    return _tested(matrix, axis, _pooled(matrix, metric, axis, data))


def slices_of(
    matrix: ResultMatrix, field: str, metric: str, axis: str = "order", data: str | None = None
) -> dict[Any, list[Effect]]:
    """Effects of an axis on the questions with each of two to eight values of a field, corrected for all of them."""
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
