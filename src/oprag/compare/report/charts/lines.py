"""Lines with whiskers: the score against the length of the context, say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oprag.compare.report.charts.axes import Axis, Plot, figure, span_of
from oprag.compare.report.charts.svg import (
    MOST_NAMED,
    OTHERS,
    Look,
    chart,
    look,
    marker,
    pixels,
    ring,
    sample,
    tooltip,
)

__all__ = ["Line", "LinePoint", "line_chart", "line_legend"]

_HEIGHT = 210.0
_MOST_WHISKERS = 4
"""With more lines, their whiskers cannot be told apart."""
_APART = 3.0
"""Pixels between points of the same value, so that their whiskers do not overlap."""


class LinePoint(NamedTuple):
    """A point of a line, with the ends of its interval if it has one, and whether a ring is drawn around it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    mark: bool = False


class Line(NamedTuple):
    """A line with its name; its points are joined from left to right."""

    name: str
    points: Sequence[LinePoint]


def line_chart(lines: Sequence[Line], *, title: str, description: str, x: Axis, y: Axis) -> str:
    """Lines, of which there is at least one with a point; the first four or fewer with whiskers for intervals.

    The first 16 lines have a look each; others are thin and grey.
    """
    points = [point for line in lines for point in line.points]
    whiskers = len(lines) <= _MOST_WHISKERS
    ends = [end for point in points for end in (point.low, point.high) if whiskers and end is not None]
    across, upwards = [point.x for point in points], [point.y for point in points]
    plot = Plot.of((x, y), across, [*upwards, *ends], _HEIGHT)
    drawn = list(plot.drawn())
    for number in reversed(range(len(lines))):
        aside = (number - (len(lines) - 1) / 2) * _APART if whiskers else 0.0
        drawn += _line(lines[number], look(number), plot, aside, whiskers=whiskers)
    names = [line.name for line in lines[:MOST_NAMED]]
    more = f" and {len(lines) - len(names):,} more" if len(lines) > len(names) else ""
    told = f"{len(lines)} line{'s' * (len(lines) != 1)}: {'; '.join(names)}{more}."
    words = f"{description} {told} {span_of(x, across)} {span_of(y, upwards)}"
    return chart(drawn, title=title, description=words, height=plot.height)


def line_legend(lines: Sequence[Line], marked: str) -> list[tuple[str, str]]:
    """Samples of how lines look with their names, and with what a ring says where there is one."""
    found = [(sample(look(number), line=True), line.name) for number, line in enumerate(lines[:MOST_NAMED])]
    if len(lines) > MOST_NAMED:
        found.append((sample(OTHERS, line=True), f"{len(lines) - MOST_NAMED:,} more"))
    if any(point.mark for line in lines for point in line.points):
        found.append((sample(None, line=True), marked))
    return found


def _line(line: Line, shown: Look, plot: Plot, aside: float, *, whiskers: bool) -> Iterator[str]:
    points = sorted(line.points, key=lambda point: point.x)
    places = [(plot.x.place(point.x) + aside, plot.y.place(point.y)) for point in points]
    joined = "M" + "L".join(f"{pixels(across)} {pixels(up)}" for across, up in places)
    if len(points) > 1:
        width = 1 if shown is OTHERS else 2
        yield f'<path class="oprag-line" d="{joined}" {shown.line(width)}>{tooltip(line.name)}</path>'
    bars = "".join(
        f"M{pixels(across)} {pixels(plot.y.place(point.low))}V{pixels(plot.y.place(point.high))}"
        for point, (across, _) in zip(points, places, strict=True)
        if whiskers and point.low is not None and point.high is not None
    )
    if bars:
        yield f'<path class="oprag-bar" d="{bars}" stroke="{shown.colour}" stroke-width="1.5"/>'
    yield f'<g class="oprag-points" {shown.point()}>'
    for point, place in zip(points, places, strict=True):
        interval = "" if point.low is None or point.high is None else f" ({figure(point.low)} to {figure(point.high)})"
        tip = tooltip(line.name, plot.x.axis.words(point.x), plot.y.axis.words(point.y) + interval)
        yield f'<path d="{marker(shown.shape, *place)}">{tip}</path>'
        if point.mark:
            yield ring(*place, tip)
    yield "</g>"
