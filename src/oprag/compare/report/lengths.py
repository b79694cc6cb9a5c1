"""Score over context length: charts of curves that differ only in the order, and a summary of each curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.verdicts import length_curves
from oprag.compare.analysis.wording import counted, listed, name_of, named, unit_of, value_text
from oprag.compare.report.charts import ChartAxis, Point, Series, legend, line_chart
from oprag.compare.report.page import Figure, Part, Points, Section, Text
from oprag.compare.results import Results

__all__ = ["curve_groups", "length_chart", "section"]

_MAX_CHARTS = 12
_ORDER_AXES = ("order", "source_ranking")


def section(results: Results, metric: str | None) -> Section | None:
    """A summary of each curve, and the charts that are not in the overview."""
    groups = [] if metric is None else curve_groups(results, metric)
    if metric is None or not groups:
        return None
    differ = varying_axes([group[0] for group in groups])[0]
    by_points: dict[Any, list[list[Curve]]] = {}
    for group in groups:
        points = [(one.value, one.context_tokens, one.summary.mean) for curve in group for one in curve.points]
        by_points.setdefault((group[0].axis, *points), []).append(group)
    parts: list[Part] = [
        Text(
            "Longer contexts contain more relevant and more irrelevant text, so scores often rise and then fall (an "
            "inverted U). Error bars are 95 % intervals of each mean, drawn for up to four lines. A curve only has a "
            "sweet spot if every other point is significantly worse; otherwise it is called flat, which does not "
            "prove that its points are equal."
        )
    ]
    for group, *others in list(by_points.values())[:_MAX_CHARTS]:
        where = named(group[0].values, differ)
        if group is groups[0] and "data" not in results.axes:
            parts.append(Text(f"{where or metric}: the chart is in the overview."))
        else:
            parts.append(length_chart(group, metric, where))
        parts.append(Points([f"{_curve_name(curve, group)}: {curve.describe()}." for curve in group]))
        if others:
            parts.append(Text(f"Same points: {'; '.join(named(other[0].values, differ) for other in others)}."))
    if len(by_points) > _MAX_CHARTS:
        parts.append(
            Text(f"{counted(len(by_points) - _MAX_CHARTS, 'chart')} more: `oprag compare --csv` exports the numbers.")
        )
    return Section("length", "Score over context length", parts)


def curve_groups(results: Results, metric: str) -> list[list[Curve]]:
    """Groups of curves that differ only in the order, one group per chart, the largest number of points first."""
    groups: dict[str, list[Curve]] = {}
    for curve in length_curves(results.settings, metric, results.family(metric)):
        shared = {name: str(value) for name, value in curve.values.items() if name not in _ORDER_AXES}
        groups.setdefault(f"{curve.axis} {sorted(shared.items())}", []).append(curve)
    return sorted(groups.values(), key=lambda some: -sum(len(curve.points) for curve in some))


def length_chart(curves: Sequence[Curve], metric: str, where: str) -> Figure:
    """A chart of score over context length with a line for each order; `where` is the values shared by all curves."""
    axis = curves[0].axis
    in_tokens = all(point.context_tokens is not None for curve in curves for point in curve.points)
    lines = [
        Series(
            _curve_name(curve, curves),
            [
                Point(
                    place, one.summary.mean or 0.0, "", one.summary.low, one.summary.high, mark=one is curve.sweet_spot
                )
                for one in curve.points
                if (place := one.context_tokens if in_tokens else one.value) is not None
            ],
        )
        for curve in curves
    ]
    values = dict.fromkeys(value_text(point.value) for curve in curves for point in curve.points)
    x = ChartAxis(f"mean context tokens, at {axis} {listed([*values])}" if in_tokens else axis)
    y = ChartAxis(metric, unit_of(metric))
    title = f"{metric} over context length{where and f', {where}'}"
    description = "The section on context length describes each line."
    chart = line_chart(lines, title=title, description=description, x=x, y=y)
    return Figure(chart, title, x.label, y.label, legend(lines))


def _curve_name(curve: Curve, curves: Sequence[Curve]) -> str:
    """The name of a curve in its group, normally its order."""
    differ = varying_axes(curves)[0]
    return name_of(curve.values, [*dict.fromkeys(["order", *(name for name in differ if name in _ORDER_AXES)])])
