"""Settings that differ in one axis alone, question by question."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oprag.checks import check_names
from oprag.compare.axes import axes
from oprag.compare.reading import Results, as_results
from oprag.compare.results_file import ResultsFile
from oprag.compare.sequence import values_of
from oprag.compare.setting import AVERAGED, Setting, settings_of
from oprag.compare.statistics import Difference, holm, paired_difference
from oprag.compare.table import check_known_metric, metrics_of
from oprag.errors import OptionError

__all__ = ["CellDifference", "check_axis", "count_pairs", "differences"]

_RESAMPLES = 10_000
_PER_PAIR = 40
"""A p-value is at least 1 / (resamples + 1), which Holm multiplies by the number of differences: at least 0.025."""


@dataclass(frozen=True, kw_only=True)
class CellDifference:
    """How much better a setting is than the one that has the first value of an axis, and else the same.

    Attributes:
        metric: The name of the metric.
        axis: The axis.
        value: The value of this setting.
        baseline: The first value of the axis, which it is compared with.
        values: The values of the other axes that both have.
        alone: Those of the axes that have an effect in this setting alone.
        baseline_alone: Those of the axes that have an effect in the other setting alone.
        difference: The score of this setting minus that of the other, over the questions that both have.
        adjusted_p: Its p-value among all differences in this metric, by Holm; None without questions.
    """

    metric: str
    axis: str
    value: Any
    baseline: Any
    values: Mapping[str, Any]
    difference: Difference
    adjusted_p: float | None = None
    alone: Mapping[str, Any] = field(default_factory=dict)
    baseline_alone: Mapping[str, Any] = field(default_factory=dict)


def check_axis(axis: str) -> None:
    """Refuse an axis whose values cannot be compared.

    Raises:
        OptionError: There is no such axis, or scores are averaged over it.
    """
    try:
        check_names({axis: None}, axes())
    except OptionError as error:
        raise OptionError(str(error).replace("option", "axis", 1), axis) from error
    if axis in AVERAGED:
        raise OptionError(f"scores are averaged over the axis {axis!r}, so its values are not compared", axis)


def differences(
    results: Results | ResultsFile | str | os.PathLike[str],
    experiment: str | None = None,
    *,
    axis: str = "order",
    metrics: Collection[str] | None = None,
    confidence: float = 0.95,
    resamples: int | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> list[CellDifference]:
    """Every setting beside the one that has the first value of an axis, and is the same in all others that both have.

    A method without a context, say, has no `k`, and so is beside every `k` of another method.

    Args:
        results: The results, or the file that has them.
        experiment: The name of the experiment; not needed where the file has one alone.
        axis: The axis.
        metrics: The names of the metrics; all that there are scores of by default.
        confidence: How often such an interval holds the truth.
        resamples: How many samples are drawn; by default 10,000, or so many that a p-value can be below 0.05 behind the
            correction for all differences.
        watch: Told how many differences are computed, and how many there are.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
        OptionError: There is no such axis or metric, or an option cannot be.
    """
    check_axis(axis)
    results = as_results(results, experiment)
    there = metrics_of(results)
    for name in metrics or ():
        check_known_metric(name, there)
    names = [name for name in there if metrics is None or name in metrics]
    pairs = list(_pairs(results, axis))
    if resamples is None:
        resamples = max(_RESAMPLES, _PER_PAIR * len(pairs))
    found: list[CellDifference] = []
    for metric in names:
        family: dict[int, CellDifference] = {}
        for number, (first, other) in enumerate(pairs):
            scores, base = other.scores(metric), first.scores(metric)
            if scores or base:
                family[number] = CellDifference(
                    metric=metric,
                    axis=axis,
                    value=other.values[axis],
                    baseline=first.values[axis],
                    values={
                        name: value for name, value in other.values.items() if name in first.values and name != axis
                    },
                    alone=_lacking(other, first),
                    baseline_alone=_lacking(first, other),
                    difference=paired_difference(
                        scores, base, clusters=results.clusters, confidence=confidence, resamples=resamples
                    ),
                )
            if watch is not None:
                watch(names.index(metric) * len(pairs) + number + 1, len(names) * len(pairs))
        adjusted = holm(
            {number: one.difference.p_value for number, one in family.items() if one.difference.p_value is not None}
        )
        found += [replace(one, adjusted_p=adjusted.get(number)) for number, one in family.items()]
    return found


def count_pairs(results: Results, *, axis: str = "order") -> int:
    """How many pairs of settings `differences` looks at."""
    return sum(1 for _ in _pairs(results, axis))


def _pairs(results: Results, axis: str) -> Iterator[tuple[Setting, Setting]]:
    """Each setting with those of the first value that are like it, the setting that is compared last."""
    settings = [setting for setting in settings_of(results.cells) if axis in setting.values]
    if not settings:
        return
    there = [setting.values[axis] for setting in settings]
    first = next((value for value in values_of(results.described)[axis] if value in there), there[0])
    # By the axes that have an effect: there are few such sets, and within two of them equals are found by their values.
    baselines: dict[frozenset[str], list[Setting]] = {}
    for setting in settings:
        if _same(setting.values[axis], first):
            baselines.setdefault(frozenset(setting.values), []).append(setting)
    known: dict[tuple[frozenset[str], frozenset[str]], dict[Hashable, list[Setting]]] = {}
    for setting in settings:
        if _same(setting.values[axis], first):
            continue
        names = frozenset(setting.values)
        for others, members in baselines.items():
            shared = (names & others) - {axis}
            if (others, shared) not in known:
                by_values = known[others, shared] = {}
                for one in members:
                    by_values.setdefault(_place(one, shared), []).append(one)
            for one in known[others, shared].get(_place(setting, shared), ()):
                yield one, setting


def _place(setting: Setting, names: Collection[str]) -> Hashable:
    return tuple((type(value), value) for name, value in setting.values.items() if name in names)


def _lacking(setting: Setting, other: Setting) -> dict[str, Any]:
    return {name: value for name, value in setting.values.items() if name not in other.values}


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)
