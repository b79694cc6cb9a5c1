"""Settings that differ in one axis alone, question by question."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from oprag.compare.analysis.differences import axis_pairs
from oprag.compare.family import Family, family_of
from oprag.compare.reading import Results, as_results
from oprag.compare.setting import Setting, settings_of
from oprag.compare.spec.axes import check_axis
from oprag.compare.stats.difference import Difference
from oprag.compare.stats.resampling import RESAMPLES
from oprag.compare.table import check_known_metric, metrics_of

__all__ = ["CellDifference", "count_pairs", "differences"]


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
        adjusted_p: Its p-value, corrected for all comparisons of the experiment in this metric
            (`oprag.compare.family`); None without common questions, or where all of them have the same score in both.
        comparisons: The number of comparisons that it is corrected for.
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
    comparisons: int = 0


def differences(
    results: Results | str | os.PathLike[str],
    experiment: str | None = None,
    *,
    axis: str = "order",
    metrics: Collection[str] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    family: Family | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> list[CellDifference]:
    """Every setting beside the one that has the first value of an axis, and is the same in all others that both have.

    A method without a context, say, has no `k`, and so is beside every `k` of another method. p-values are corrected
    for all comparisons of the experiment in the metric, those of other axes included, so that a pair of settings has
    the same p-value here, in `sweet_spots` and in the report.

    Args:
        results: The results, or the file that has them.
        experiment: The name of the experiment; not needed where the file has one alone.
        axis: The axis.
        metrics: The names of the metrics; all that there are scores of by default.
        confidence: How often such an interval holds the truth.
        resamples: Number of samples for intervals and p-values.
        family: The comparisons that p-values are corrected for, where they are at hand, and one metric is named.
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
    pairs = list(axis_pairs(settings_of(results.cells), results.described, axis))
    found: list[CellDifference] = []
    for metric in names:
        whole = family or family_of(results, metric, confidence=confidence, resamples=resamples)
        for number, (first, other) in enumerate(pairs):
            scores, base = other.scores(metric), first.scores(metric)
            if scores or base:
                judged = whole.judge(scores, base)
                found.append(
                    CellDifference(
                        metric=metric,
                        axis=axis,
                        value=other.values[axis],
                        baseline=first.values[axis],
                        values={
                            name: value for name, value in other.values.items() if name in first.values and name != axis
                        },
                        alone=_lacking(other, first),
                        baseline_alone=_lacking(first, other),
                        difference=judged.difference,
                        adjusted_p=judged.adjusted_p,
                        comparisons=whole.comparisons,
                    )
                )
            if watch is not None:
                watch(names.index(metric) * len(pairs) + number + 1, len(names) * len(pairs))
    return found


def count_pairs(results: Results, *, axis: str = "order") -> int:
    """How many pairs of settings `differences` looks at."""
    return sum(1 for _ in axis_pairs(settings_of(results.cells), results.described, axis))


def _lacking(setting: Setting, other: Setting) -> dict[str, Any]:
    return {name: value for name, value in setting.values.items() if name not in other.values}
