"""Score over context length: charts of curves that differ in the order alone, and what each shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.verdicts import length_curves
from oprag.compare.analysis.wording import counted, listed, name_of, named, unit_of, value_text
from oprag.compare.report.charts.axes import Axis
from oprag.compare.report.charts.series import Point, Series, legend, line_chart
from oprag.compare.report.page import Figure, Part, Points, Section, Text
from oprag.compare.results import Results

__all__ = ["curve_groups", "length_chart", "section"]

_MOST = 12
_OF_ORDERS = ("order", "source_ranking")


def section(results: Results, metric: str | None) -> Section | None:
    """What each curve shows, with the charts that are not on the first screen."""
    groups = [] if metric is None else curve_groups(results, metric)
    if metric is None or not groups:
        return None
    differ = varying_axes([group[0] for group in groups])[0]
    alike: dict[Any, list[list[Curve]]] = {}
    for group in groups:
        points = [(one.value, one.context_tokens, one.summary.mean) for curve in group for one in curve.points]
        alike.setdefault((group[0].axis, *points), []).append(group)
    parts: list[Part] = [
        Text(
            "Longer contexts contain more of what answers a question, and more of what does not: scores often rise and "
            "then fall (an inverted U). Whiskers are 95 % intervals of each mean, drawn for up to four lines. A sweet "
            "spot is named only where every other point of its curve is shown to be worse; else the curve is flat, "
            "which does not show that its points are equal."
        )
    ]
    for group, *others in list(alike.values())[:_MOST]:
        where = named(group[0].values, differ)
        if group is groups[0] and "data" not in results.axes:
            parts.append(Text(f"{where or metric}: the chart is on the first screen."))
        else:
            parts.append(length_chart(group, metric, where))
        parts.append(Points([f"{_curve_name(curve, group)}: {curve.describe()}." for curve in group]))
        if others:
            parts.append(Text(f"The same points: {'; '.join(named(other[0].values, differ) for other in others)}."))
    if len(alike) > _MOST:
        parts.append(Text(f"{counted(len(alike) - _MOST, 'chart')} more: `oprag compare --csv` has the figures."))
    return Section("length", "Score over context length", parts)


def curve_groups(results: Results, metric: str) -> list[list[Curve]]:
    """Curves that are alike but for the order, each group for a chart, the one with the most points first."""
    groups: dict[str, list[Curve]] = {}
    for curve in length_curves(results.settings, metric, results.family(metric)):
        alike = {name: str(value) for name, value in curve.values.items() if name not in _OF_ORDERS}
        groups.setdefault(f"{curve.axis} {sorted(alike.items())}", []).append(curve)
    return sorted(groups.values(), key=lambda some: -sum(len(curve.points) for curve in some))


def length_chart(curves: Sequence[Curve], metric: str, where: str) -> Figure:
    """Score over context length, a line for each order; `where` is what the curves have in common."""
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
    x = Axis(f"tokens of the context, mean, at {axis} {listed([*values])}" if in_tokens else axis)
    y = Axis(metric, unit_of(metric))
    title = f"{metric} over context length{where and f', {where}'}"
    told = "The section on context length says what each line shows."
    return Figure(line_chart(lines, title=title, description=told, x=x, y=y), title, x.label, y.label, legend(lines))


def _curve_name(curve: Curve, curves: Sequence[Curve]) -> str:
    """The name of a curve within its group: its order, as a rule."""
    differ = varying_axes(curves)[0]
    return name_of(curve.values, [*dict.fromkeys(["order", *(name for name in differ if name in _OF_ORDERS)])])
