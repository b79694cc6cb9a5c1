"""Score against the length of the context, a line for each order, with the sweet spot or that the curve is flat."""

from __future__ import annotations

from collections.abc import Sequence

from oprag.compare.analysis.curves import Curve, CurvePoint
from oprag.compare.analysis.wording import counted, unit_of, value_text
from oprag.compare.report.charts.axes import Axis
from oprag.compare.report.charts.lines import Line, LinePoint, line_chart, line_legend
from oprag.compare.report.material import Material
from oprag.compare.report.page import Figure, Part, Section, Text

__all__ = ["section", "spots_of"]

_LENGTHS = ("k", "token_budget")
_MOST = 12  # charts


def spots_of(material: Material) -> list[Curve]:
    """What can be said about each curve over the length of the context, of those with two points or more.

    What reads whole documents reads the same however long the context is.
    """
    if material.metric is None:
        return []
    return [
        spot
        for axis in _LENGTHS
        if axis in material.differ
        for spot in material.results.curves(axis, material.metric)
        if len(spot.points) > 1 and spot.values.get("method") != "long_context"
    ]


def section(material: Material, spots: Sequence[Curve]) -> Section | None:
    """The curves."""
    if not spots:
        return None
    charts: dict[tuple[str, str], list[Curve]] = {}
    for spot in spots:
        place = spot.axis, material.name({name: value for name, value in spot.values.items() if name != "order"})
        charts.setdefault(place, []).append(spot)
    parts: list[Part] = [
        Text(
            "Longer contexts contain more of what answers a question, and more of what does not: scores often rise and "
            "then fall (an inverted U). Whiskers are 95 % intervals of each mean, drawn for up to four lines. A sweet "
            "spot is named only where every other point of its curve is shown to be worse; else the curve is flat, "
            "which does not show that its points are equal."
        )
    ]
    for (axis, where), curves in list(charts.items())[:_MOST]:
        parts.append(_chart(axis, where if len(charts) > 1 else "", curves))
    if len(charts) > _MOST:
        parts.append(Text(f"{counted(len(charts) - _MOST, 'chart')} more: `oprag compare --csv` has the figures."))
    return Section("length", "Score against the length of the context", parts)


def _chart(axis: str, where: str, curves: Sequence[Curve]) -> Figure:
    metric = curves[0].metric
    in_tokens = all(point.context_tokens is not None for spot in curves for point in spot.points)
    lines = [
        Line(
            _order(spot),
            tuple(
                LinePoint(
                    x,
                    point.summary.mean or 0.0,
                    point.summary.low,
                    point.summary.high,
                    mark=point is spot.sweet_spot,
                )
                for x, point in _placed(spot, in_tokens=in_tokens)
            ),
        )
        for spot in curves
    ]
    places = [point.x for line in lines for point in line.points]
    x = Axis(
        "context" if in_tokens else axis,
        "tokens, mean" if in_tokens else "chunks" if axis == "k" else "tokens",
        logarithmic=min(places) > 0 and max(places) >= 8 * min(places),
    )
    values = dict.fromkeys(point.value for spot in curves for point in spot.points)
    placeless = (
        "" if in_tokens or None not in values else "; without a limit the length is not known, so it is not drawn"
    )
    told = [f"{_order(spot)}: {spot.describe()}" if len(curves) > 1 else spot.describe() for spot in curves]
    title = f"{metric} against the length of the context{where and f', {where}'}"
    y = Axis(metric, unit_of(metric))
    chart = line_chart(
        lines,
        title=title,
        description=". ".join([f"{axis} is varied", *told]) + ".",
        x=x,
        y=y,
    )
    lengths = f"{axis}: {', '.join(map(value_text, values))}{placeless}."
    notes = [lengths, *(f"{text}." for text in told)]
    return Figure(chart, title, x.label, y.label, line_legend(lines, "sweet spot"), notes)


def _order(spot: Curve) -> str:
    return value_text(spot.values["order"]) if "order" in spot.values else value_text(spot.values.get("method"))


def _placed(spot: Curve, *, in_tokens: bool) -> list[tuple[float, CurvePoint]]:
    """The points of a curve with their lengths; without those whose length is not known."""
    places = ((point.context_tokens if in_tokens else point.value, point) for point in spot.points)
    return [(float(place), point) for place, point in places if place is not None]
