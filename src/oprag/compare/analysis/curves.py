"""Curves over a numeric axis, and their sweet spots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from oprag.compare.analysis.differences import ComparisonFamily, SettingDifference, against_highest
from oprag.compare.analysis.settings import curves_along
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import assignments
from oprag.compare.stats.summary import Summary

__all__ = ["Curve", "CurvePoint", "curves_of"]


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """A point of a curve.

    Attributes:
        value: Value on the axis.
        setting: The setting.
        summary: Its scores, over all questions that have one.
    """

    value: Any
    setting: SettingSummary
    summary: Summary

    @property
    def context_tokens(self) -> float | None:
        """Mean number of context tokens; None without a context."""
        return self.setting.cost("context_tokens")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Settings that differ only in one axis, and the best value of that axis, if it is significantly the best.

    The highest of several means is high partly by chance. A sweet spot is therefore reported only if its paired
    difference to every other point of the curve, question by question, has an interval above 0 and a p-value below
    1 - confidence, corrected for all comparisons of the experiment in the metric. If all settings were equally good, at
    most one experiment in twenty would have a sweet spot.

    Attributes:
        axis: Name of the axis.
        metric: Name of the metric.
        values: Values on the other axes.
        points: Points with scores, in ascending order of their values.
        highest: The highest point: over the questions that both have, its mean is above that of every other point (or
            of most of them, if some points lack questions).
        others: The highest point compared with each of the others (`baseline`), in the order of `points`.
        comparisons: Number of comparisons that p-values are corrected for.
        unscored: Values without scores, because all questions failed or were not tried yet.
    """

    axis: str
    metric: str
    values: Mapping[str, Any]
    points: tuple[CurvePoint, ...]
    highest: CurvePoint = field(repr=False)
    others: tuple[SettingDifference, ...] = field(repr=False)
    comparisons: int = 0
    unscored: tuple[Any, ...] = ()

    @property
    def contenders(self) -> tuple[CurvePoint, ...]:
        """The highest point, and all points that are not significantly worse."""
        worse = {one.baseline.number for one in self.others if one.difference.significantly_higher}
        return tuple(point for point in self.points if point.setting.number not in worse)

    @property
    def sweet_spot(self) -> CurvePoint | None:
        """The highest point, if every other point is significantly worse; None if the curve is flat at the top."""
        return self.highest if self.others and len(self.contenders) == 1 else None

    def describe(self) -> str:
        """One sentence with numbers: the sweet spot, or the range of values over which the curve is flat."""
        score = f"{self.metric} {self.highest.summary.describe()}"
        top = f"{score} at {self._named(self.highest.value)}"
        if not self.others:
            text = f"nothing to compare: {top} is the only point with scores, n = {self.highest.summary.n:,}"
        elif self.sweet_spot is not None:
            nearest = self._nearest(self.others)
            text = (
                f"sweet spot at {self._named(self.sweet_spot.value)}: {score} is significantly higher than at every "
                f"other point; the closest is {self._named(nearest.baseline_value)} ({self._described(nearest)})"
            )
            if self.sweet_spot is self.points[0] or self.sweet_spot is self.points[-1]:
                end = "largest" if self.sweet_spot is self.points[-1] else "smallest"
                text += f"; {self._named(self.sweet_spot.value)} is the {end} value tried, so the peak may be beyond it"
        else:
            nearest = self._nearest([one for one in self.others if not one.difference.significantly_higher])
            text = (
                f"flat {self._range()}: the highest, {top}, is not significantly higher than at "
                f"{self._named(nearest.baseline_value)} ({self._described(nearest)})"
            )
            if worse := [one.baseline_value for one in self.others if one.difference.significantly_higher]:
                text += f"; significantly lower: {', '.join(map(self._named, worse))}"
        if self.unscored:
            text += f"; no scores at {', '.join(map(self._named, self.unscored))}"
        return text

    def _described(self, other: SettingDifference) -> str:
        several = other.difference.adjusted_p is not None and self.comparisons > 1
        corrected = f", corrected for {self.comparisons:,} comparisons" if several else ""
        return f"{other.describe()}{corrected}"

    def _named(self, value: Any) -> str:
        return assignments({self.axis: value}, [self.axis])

    def _nearest(self, others: Sequence[SettingDifference]) -> SettingDifference:
        return min(others, key=lambda one: float("inf") if one.difference.mean is None else one.difference.mean)

    def _range(self) -> str:
        points = self.contenders
        places = [number for number, point in enumerate(self.points) if point in points]
        if all(after - before == 1 for before, after in pairwise(places)):
            return f"between {self._named(points[0].value)} and {self._named(points[-1].value)}"
        return f"at {', '.join(self._named(point.value) for point in points)}"


def curves_of(settings: Sequence[SettingSummary], axis: str, metric: str, family: ComparisonFamily) -> list[Curve]:
    """Curves over a numeric axis with scores of a metric, in grid order."""
    found: list[Curve] = []
    for values, members in curves_along(settings, axis):
        scored = [one for one in members if metric in one.scores]
        if not scored:
            continue
        top, others = against_highest(scored, metric, family, axis)
        points = {
            one.number: CurvePoint(value=one.values[axis], setting=one, summary=one.scores[metric]) for one in scored
        }
        found.append(
            Curve(
                axis=axis,
                metric=metric,
                values=values,
                points=tuple(points.values()),
                highest=points[top.number],
                others=tuple(others),
                comparisons=family.comparisons,
                unscored=tuple(one.values[axis] for one in members if metric not in one.scores),
            )
        )
    return found
