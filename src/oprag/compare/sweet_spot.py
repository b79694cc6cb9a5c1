"""Sweet spots: the value of an axis that is shown to be better than all the others, or that there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from oprag.compare.analysis.differences import Judgment
from oprag.compare.curve import CurvePoint, check_ordered, curves_of
from oprag.compare.family import Family, family_of
from oprag.compare.highest import highest
from oprag.compare.reading import Results, as_results
from oprag.compare.setting import settings_of
from oprag.compare.stats.resampling import RESAMPLES
from oprag.compare.table import CellSummary, cell_table, check_metric

__all__ = ["Behind", "CurvePoint", "SweetSpot", "sweet_spots"]


@dataclass(frozen=True, kw_only=True)
class Behind(Judgment):
    """A point beside the highest one, and what is known of the highest one minus this one.

    Attributes:
        point: The point.
    """

    point: CurvePoint


@dataclass(frozen=True, kw_only=True)
class SweetSpot:
    """What can be said about the best value of an axis on one curve.

    Attributes:
        axis: The axis.
        metric: The metric.
        values: What is the same on the whole curve.
        points: The points that have scores, from the least value to the largest.
        best: The highest point, where every other one is shown to be worse; None where the curve is flat.
        contenders: The highest point, and those that are not shown to be worse.
        highest: The highest point: over the questions that both have, its mean is above that of each other one (or of
            most of them, where points lack questions).
        behind: How far the others are behind it, in the sequence of the points.
        comparisons: The number of comparisons that p-values are corrected for.
        unscored: The values at which there are no scores, since everything failed or was not tried yet. They play no
            part.
        exhausted: Whether at the largest value everything is read that there is, so that no larger one could be better.
    """

    axis: str
    metric: str
    values: Mapping[str, Any]
    points: tuple[CurvePoint, ...]
    best: CurvePoint | None
    contenders: tuple[CurvePoint, ...]
    highest: CurvePoint = field(repr=False)
    behind: tuple[Behind, ...] = field(repr=False)
    comparisons: int = 0
    unscored: tuple[Any, ...] = ()
    exhausted: bool = False

    def describe(self) -> str:
        """One sentence with its numbers: the sweet spot, or that the curve is flat and between which values."""
        there = f"{self.metric} {self.highest.summary.describe()} at {self._named(self.highest)}"
        if not self.behind:
            text = f"nothing to compare: {there} is the only point with scores, n = {self.highest.summary.n:,}"
        elif self.best is not None:
            nearest = self._nearest(self.behind)
            text = (
                f"sweet spot at {self._named(self.best)}: {there} is above every other point, the nearest being "
                f"{self._named(nearest.point)} ({self._told(nearest)})"
            )
            if self.best is self.points[0] or self.best is self.points[-1]:
                end = "largest" if self.best is self.points[-1] else "smallest"
                beyond = (
                    "holds everything there is, so nothing lies beyond"
                    if self.exhausted and end == "largest"
                    else f"is the {end} value tried, so the peak may lie beyond"
                )
                text += f"; it {beyond}"
        else:
            nearest = self._nearest([one for one in self.behind if not one.shown])
            text = (
                f"flat {self._range(self.contenders)}: {there} is the highest, and is not shown to be above "
                f"{self._named(nearest.point)} ({self._told(nearest)})"
            )
            if worse := [one.point for one in self.behind if one.shown]:
                text += f"; shown to be worse: {', '.join(map(self._named, worse))}"
        if self.unscored:
            text += f"; no scores at {', '.join(self._named(value) for value in self.unscored)}"
        return text

    def _told(self, behind: Behind) -> str:
        several = behind.adjusted_p is not None and self.comparisons > 1
        corrected = f", corrected for {self.comparisons:,} comparisons" if several else ""
        return f"{behind.describe()}{corrected}"

    def _named(self, point: Any) -> str:
        value = point.value if isinstance(point, CurvePoint) else point
        return f"{self.axis}={'none' if value is None else value}"

    def _nearest(self, behind: Sequence[Behind]) -> Behind:
        return min(behind, key=lambda one: float("inf") if one.difference.mean is None else one.difference.mean)

    def _range(self, points: Sequence[CurvePoint]) -> str:
        places = [number for number, point in enumerate(self.points) if point in points]
        if all(after - before == 1 for before, after in pairwise(places)):
            return f"between {self._named(points[0])} and {self._named(points[-1])}"
        return f"over {', '.join(map(self._named, points))}"


def sweet_spots(
    results: Results | str | os.PathLike[str],
    experiment: str | None = None,
    *,
    axis: str,
    metric: str,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    table: Sequence[CellSummary] | None = None,
    family: Family | None = None,
) -> list[SweetSpot]:
    """What can be said about the best value of an axis, for each curve: the settings that are alike but for it.

    The highest of several means is high by chance too. So a point is named only where its paired difference to every
    other point of the curve, question by question, has an interval above 0, and a p-value below 1 - confidence,
    corrected for all comparisons of the experiment in the metric (`paired_difference`, `oprag.compare.family`). Of
    experiments in which all settings are the same, one in twenty has a sweet spot at most.

    Args:
        results: The results, or the file that has them.
        experiment: The name of the experiment; not needed where the file has one alone.
        axis: An axis of numbers, such as k, token_budget or a threshold.
        metric: A metric of which more is better.
        confidence: How often an interval holds the truth.
        resamples: Number of samples for intervals and p-values.
        table: The rows of `cell_table` for these results, where they are at hand.
        family: The comparisons that p-values are corrected for, where they are at hand.

    Returns:
        The curves that have scores of the metric, in the sequence of the grid.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
        OptionError: The axis has no order, more of the metric is not better, or an option cannot be.
    """
    check_ordered(axis)
    results = as_results(results, experiment)
    check_metric(metric, results)
    if table is None:
        table = cell_table(results, confidence=confidence)
    rows = list(zip(settings_of(results.cells), table, strict=True))
    found: list[SweetSpot] = []
    for values, members in curves_of(rows, axis):
        scored = [one for one in members if metric in one[1].scores]
        unscored = [setting.values[axis] for setting, row in members if metric not in row.scores]
        if scored:
            points = [_point(setting.values[axis], row, metric) for setting, row in scored]
            scores = [setting.scores(metric) for setting, _ in scored]
            if family is None:
                family = family_of(results, metric, confidence=confidence, resamples=resamples)
            judged = _judged(points, scores, family)
            found.append(SweetSpot(axis=axis, metric=metric, values=values, unscored=tuple(unscored), **judged))
    return found


def _point(value: Any, row: CellSummary, metric: str) -> CurvePoint:
    tokens = row.per_answer.get("context_tokens")
    return CurvePoint(value=value, summary=row.scores[metric], context_tokens=tokens, setting=row)


def _judged(points: Sequence[CurvePoint], scores: Sequence[Mapping[str, float]], family: Family) -> dict[str, Any]:
    """The highest point, how far the others are behind it, and what that says."""
    place = highest(scores)
    behind = tuple(
        Behind(point=point, **vars(family.judge(scores[place], scores[number])))
        for number, point in enumerate(points)
        if number != place
    )
    worse = [one.point for one in behind if one.shown]
    contenders = tuple(point for point in points if not any(point is one for one in worse))
    return {
        "points": tuple(points),
        "highest": points[place],
        "behind": behind,
        "comparisons": family.comparisons,
        "contenders": contenders,
        "best": points[place] if behind and len(contenders) == 1 else None,
    }
