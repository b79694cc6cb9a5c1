"""Charts of series: lines with whiskers, and dots with a Pareto front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oprag.compare.report.charts.axes import Axis, Plot, figure, span_of
from oprag.compare.report.charts.svg import MOST_NAMED, OTHERS, Look, look, paint, pixels, ring, sample, tooltip

__all__ = ["Point", "Series", "legend", "line_chart", "scatter_chart"]

_MOST_WHISKERS = 4
"""With more lines, their whiskers cannot be told apart."""
_APART = 3.0
"""Pixels between points of the same value, so that their whiskers do not overlap."""
_MOST_TOOLTIPS = 2_000
"""With more the file is large and one dot lies on the other: those on the front alone say what they are."""


class Point(NamedTuple):
    """A point, its name beside that of its series, the ends of its interval, and whether a ring is around it."""

    x: float
    y: float
    name: str = ""
    low: float | None = None
    high: float | None = None
    mark: bool = False


class Series(NamedTuple):
    """Points that look alike, with their name. The first 16 of a chart have a look each; others are grey."""

    name: str
    points: Sequence[Point]


def line_chart(lines: Sequence[Series], *, title: str, description: str, x: Axis, y: Axis) -> str:
    """Lines, of which there is at least one with a point; up to four with whiskers for intervals."""
    points = [point for line in lines for point in line.points]
    whiskers = len(lines) <= _MOST_WHISKERS
    ends = [end for point in points for end in (point.low, point.high) if whiskers and end is not None]
    across, upwards = [point.x for point in points], [point.y for point in points]
    plot = Plot.of(across, [*upwards, *ends])
    drawn: list[str] = []
    for number in reversed(range(len(lines))):
        aside = (number - (len(lines) - 1) / 2) * _APART if whiskers else 0.0
        drawn += _line(lines[number], look(number), plot, (x, y), aside, whiskers=whiskers)
    told = f"{len(lines)} line{'s' * (len(lines) != 1)}: {'; '.join(line.name for line in lines)}."
    words = f"{description} {told} {span_of(x, plot.x, across)} {span_of(y, plot.y, upwards)}"
    return plot.picture(drawn, title=title, description=words)


def scatter_chart(
    groups: Sequence[Series], *, title: str, description: str, x: Axis, y: Axis, front: Sequence[tuple[float, float]]
) -> str:
    """Dots, of which there is at least one, and the front as a line of steps, for less of `x` and more of `y`."""
    points = [point for group in groups for point in group.points]
    across, upwards = [point.x for point in points], [point.y for point in points]
    plot = Plot.of(across, upwards)
    drawn: list[str] = []
    if len(front) > 1:
        (left, low), *others = [(pixels(plot.x.place(one)), pixels(plot.y.place(up))) for one, up in sorted(front)]
        path = f"M{left} {low}" + "".join(f"H{one}V{up}" for one, up in others)
        drawn.append(f'<path class="oprag-front" d="{path}" fill="none" stroke="{paint("ink")}" stroke-width="1.4"/>')
    border = f'stroke="{paint("page")}" stroke-width="0.7"'
    # The first groups last, and so on top.
    for number, group in reversed([*enumerate(groups)]):
        shown = look(number)
        drawn.append(f'<g class="oprag-points" fill="{shown.colour}" {border} opacity="0.85">')
        for point in group.points:
            told = len(points) <= _MOST_TOOLTIPS or point[:2] in front
            tip = tooltip(point.name, group.name, x.words(point.x), y.words(point.y)) if told else ""
            drawn.append(f'<path d="{shown.marker(plot.x.place(point.x), plot.y.place(point.y))}">{tip}</path>')
        drawn.append("</g>")
    words = f"{description} {span_of(x, plot.x, across)} {span_of(y, plot.y, upwards)}"
    return plot.picture(drawn, title=title, description=words)


def legend(series: Sequence[Series], *, lines: bool = True) -> list[tuple[str, str]]:
    """Samples of how series look with their names, and with what a ring says where there is one."""
    found = [(sample(look(number), line=lines), one.name) for number, one in enumerate(series[:MOST_NAMED])]
    if len(series) > MOST_NAMED:
        found.append((sample(OTHERS, line=lines), f"{len(series) - MOST_NAMED:,} more"))
    if any(point.mark for one in series for point in one.points):
        found.append((sample(None, line=lines), "sweet spot"))
    return found


def _line(
    line: Series, shown: Look, plot: Plot, axes: tuple[Axis, Axis], aside: float, *, whiskers: bool
) -> Iterator[str]:
    points = sorted(line.points, key=lambda point: point.x)
    places = [(plot.x.place(point.x) + aside, plot.y.place(point.y)) for point in points]
    if len(points) > 1:
        joined = "M" + "L".join(f"{pixels(across)} {pixels(up)}" for across, up in places)
        yield f'<path class="oprag-line" d="{joined}" {shown.line}>{tooltip(line.name)}</path>'
    bars = "".join(
        f"M{pixels(across)} {pixels(plot.y.place(point.low))}V{pixels(plot.y.place(point.high))}"
        for point, (across, _) in zip(points, places, strict=True)
        if whiskers and point.low is not None and point.high is not None
    )
    if bars:
        yield f'<path class="oprag-bar" d="{bars}" stroke="{shown.colour}" stroke-width="1.5"/>'
    yield f'<g class="oprag-points" fill="{shown.colour}">'
    for point, place in zip(points, places, strict=True):
        interval = "" if point.low is None or point.high is None else f" ({figure(point.low)} to {figure(point.high)})"
        tip = tooltip(line.name, axes[0].words(point.x), axes[1].words(point.y) + interval)
        yield f'<path d="{shown.marker(*place)}">{tip}</path>'
        if point.mark:
            yield ring(*place, tip)
    yield "</g>"
