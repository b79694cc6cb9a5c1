"""Line charts with error bars, and scatter plots with a Pareto front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oprag.compare.report.charts.axes import ChartAxis, Plot, figure, span_of
from oprag.compare.report.charts.svg import MAX_NAMED, OTHERS, Look, look, paint, pixels, ring, sample, tooltip

__all__ = ["Point", "Series", "legend", "line_chart", "scatter_chart"]

_MAX_LINES_WITH_BARS = 4
"""With more lines, error bars are not drawn: they could not be distinguished."""
_BAR_OFFSET = 3.0
"""Horizontal pixels between points of different lines at the same value, so that their error bars do not overlap."""
_MAX_TOOLTIPS = 2_000
"""With more points only those on the Pareto front have tooltips, to limit the size of the file."""


class Point(NamedTuple):
    """A point with a name for its tooltip, the ends of its interval, and whether it is marked with a ring."""

    x: float
    y: float
    name: str = ""
    low: float | None = None
    high: float | None = None
    mark: bool = False


class Series(NamedTuple):
    """A named series of points. The first 16 series of a chart have distinct styles; the others are gray."""

    name: str
    points: Sequence[Point]


def line_chart(lines: Sequence[Series], *, title: str, description: str, x: ChartAxis, y: ChartAxis) -> str:
    """A chart of one or more lines, with error bars if there are at most four; needs at least one point."""
    points = [point for line in lines for point in line.points]
    with_bars = len(lines) <= _MAX_LINES_WITH_BARS
    ends = [end for point in points for end in (point.low, point.high) if with_bars and end is not None]
    across, upwards = [point.x for point in points], [point.y for point in points]
    plot = Plot.of(across, [*upwards, *ends])
    drawn: list[str] = []
    for number in reversed(range(len(lines))):
        offset = (number - (len(lines) - 1) / 2) * _BAR_OFFSET if with_bars else 0.0
        drawn += _line(lines[number], look(number), plot, (x, y), offset, with_bars=with_bars)
    names = f"{len(lines)} line{'s' * (len(lines) != 1)}: {'; '.join(line.name for line in lines)}."
    words = f"{description} {names} {span_of(x, plot.x, across)} {span_of(y, plot.y, upwards)}"
    return plot.picture(drawn, title=title, description=words)


def scatter_chart(
    groups: Sequence[Series],
    *,
    title: str,
    description: str,
    x: ChartAxis,
    y: ChartAxis,
    front: Sequence[tuple[float, float]],
) -> str:
    """A scatter plot of one or more points, with the Pareto front (low `x`, high `y`) as a step line."""
    points = [point for group in groups for point in group.points]
    across, upwards = [point.x for point in points], [point.y for point in points]
    plot = Plot.of(across, upwards)
    drawn: list[str] = []
    if len(front) > 1:
        (left, low), *others = [(pixels(plot.x.place(one)), pixels(plot.y.place(up))) for one, up in sorted(front)]
        path = f"M{left} {low}" + "".join(f"H{one}V{up}" for one, up in others)
        drawn.append(f'<path class="oprag-front" d="{path}" fill="none" stroke="{paint("ink")}" stroke-width="1.4"/>')
    border = f'stroke="{paint("page")}" stroke-width="0.7"'
    # Draw the first groups last, so that they are on top.
    for number, group in reversed([*enumerate(groups)]):
        shown = look(number)
        drawn.append(f'<g class="oprag-points" fill="{shown.colour}" {border} opacity="0.85">')
        for point in group.points:
            has_tooltip = len(points) <= _MAX_TOOLTIPS or point[:2] in front
            tip = tooltip(point.name, group.name, x.words(point.x), y.words(point.y)) if has_tooltip else ""
            drawn.append(f'<path d="{shown.marker(plot.x.place(point.x), plot.y.place(point.y))}">{tip}</path>')
        drawn.append("</g>")
    words = f"{description} {span_of(x, plot.x, across)} {span_of(y, plot.y, upwards)}"
    return plot.picture(drawn, title=title, description=words)


def legend(series: Sequence[Series], *, lines: bool = True) -> list[tuple[str, str]]:
    """The entries of a legend, as pairs of a sample image and a name; includes the ring of sweet spots if used."""
    found = [(sample(look(number), line=lines), one.name) for number, one in enumerate(series[:MAX_NAMED])]
    if len(series) > MAX_NAMED:
        found.append((sample(OTHERS, line=lines), f"{len(series) - MAX_NAMED:,} more"))
    if any(point.mark for one in series for point in one.points):
        found.append((sample(None, line=lines), "sweet spot"))
    return found


def _line(
    line: Series, shown: Look, plot: Plot, axes: tuple[ChartAxis, ChartAxis], offset: float, *, with_bars: bool
) -> Iterator[str]:
    points = sorted(line.points, key=lambda point: point.x)
    places = [(plot.x.place(point.x) + offset, plot.y.place(point.y)) for point in points]
    if len(points) > 1:
        joined = "M" + "L".join(f"{pixels(across)} {pixels(up)}" for across, up in places)
        yield f'<path class="oprag-line" d="{joined}" {shown.line}>{tooltip(line.name)}</path>'
    bars = "".join(
        f"M{pixels(across)} {pixels(plot.y.place(point.low))}V{pixels(plot.y.place(point.high))}"
        for point, (across, _) in zip(points, places, strict=True)
        if with_bars and point.low is not None and point.high is not None
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
