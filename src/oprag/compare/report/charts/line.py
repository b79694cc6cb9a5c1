"""A line chart with interval bands: the score against the length of the context, say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from oprag.compare.report.charts.drawing import Drawing, ring, tooltip
from oprag.compare.report.charts.numbers import figure
from oprag.compare.report.charts.palette import MOST_NAMED, OTHERS, Look, look, marker
from oprag.compare.report.charts.plot import Plot, draw_plot, span_of
from oprag.compare.report.charts.scale import Axis, number
from oprag.compare.report.charts.svg import pixels
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_text

__all__ = ["Line", "LinePoint", "line_chart"]

_HEIGHT = 200.0
_MOST_POINTS = 2_000
"""With more the file is large and the points touch: lines alone are drawn, and the points that are marked."""


class LinePoint(NamedTuple):
    """A point of a line.

    Attributes:
        x: Where it stands across.
        y: Where it stands upwards; None where there is no value, and the line is broken.
        low: The lower end of its interval; None without one.
        high: The upper end.
        mark: Whether a ring is drawn around it, as around a sweet spot.
    """

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None
    mark: bool = False


class Line(NamedTuple):
    """A line with its name.

    Attributes:
        name: What it is, for the legend.
        points: Its points, in any sequence: they are joined by `x`.
    """

    name: str
    points: Sequence[LinePoint]


def line_chart(
    series: Sequence[Line],
    *,
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    marked: str = "sweet spot",
    note: str = "",
) -> str:
    """Lines with a band for the interval of each point, a legend and tooltips.

    The first 16 lines have a look and a name each; others are thin and grey, with a tooltip. Without any value the
    chart says so.

    Args:
        series: The lines.
        title: What the chart shows.
        description: What is to be seen, for who cannot see it.
        x: The axis across.
        y: The axis upwards.
        marked: What the ring around marked points says, for the legend.
        note: What is said below the chart in small type, such as what the bands are; "" for nothing.

    Returns:
        An `<svg>` element.

    Raises:
        OptionError: A value is no finite number, an interval has one end or ends before it begins, a value is not above
            0 on a logarithmic axis, or a text is no string.
    """
    check_text("marked", marked)
    lines = [_checked(line) for line in series]
    drawing = Drawing(title, description, note)
    points = [point for line in lines for point in line.points if point.y is not None]
    if not points:
        drawing.paragraph("No values.")
        return drawing.svg(["There are no values."])
    across = [point.x for point in points]
    heights = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    plot = draw_plot(drawing, x, y, across, heights, height=_HEIGHT)
    named, others = lines[:MOST_NAMED], lines[MOST_NAMED:]
    for line in others:
        drawing.add(*_thin(line, plot))
    looks = [(look(place), line) for place, line in enumerate(named)]
    opacity = 0.18 if len(named) <= 3 else 0.12 if len(named) <= 6 else 0.07
    for shown, line in looks:
        drawing.add(*_band(line, plot, shown, opacity))
    for shown, line in looks:
        drawing.add(*_line(line, plot, shown, points=len(points) <= _MOST_POINTS))
    drawing.add(*_rings(lines, plot))
    drawing.legend(_entries(looks, len(others), marked if any(point.mark for point in points) else ""), dashes=True)
    return drawing.svg([_names(lines), span_of(x, across), span_of(y, heights)])


def _checked(line: Line) -> Line:
    """The line with its points from left to right, as floats."""
    check_text("the name of a line", line.name)
    points: list[LinePoint] = []
    for place, point in enumerate(line.points):
        where = f"point {place} of the line {line.name!r}"
        up, low, high = (
            None if value is None else number(value, f"{name} of {where}")
            for name, value in (("y", point.y), ("low", point.low), ("high", point.high))
        )
        if (low is None) is not (high is None) or (low is not None and high is not None and low > high):
            raise OptionError(
                f"the interval of {where} must go from low to high, got {describe(low)} and {describe(high)}", point
            )
        # Without a value there is nothing that the interval could be of.
        ends = (low, high) if up is not None else (None, None)
        points.append(LinePoint(number(point.x, f"x of {where}"), up, *ends, bool(point.mark)))
    return Line(line.name, sorted(points, key=lambda point: point.x))


def _runs(line: Line, there: Callable[[LinePoint], bool]) -> Iterator[list[LinePoint]]:
    """Points beside each other of which that holds."""
    return (list(run) for holds, run in groupby(line.points, there) if holds)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{pixels(x)} {pixels(y)}" for x, y in places)


def _places(run: Sequence[LinePoint], plot: Plot, which: str) -> list[tuple[float, float]]:
    return [(plot.x.place(point.x), plot.y.place(getattr(point, which))) for point in run]


def _band(line: Line, plot: Plot, shown: Look, opacity: float) -> Iterator[str]:
    bands = bars = ""
    for run in _runs(line, lambda point: point.low is not None):
        upper, lower = _places(run, plot, "high"), _places(run, plot, "low")
        if len({place for place, _ in upper}) > 1:
            bands += f"{_path([*upper, *reversed(lower)])}Z"
        else:  # A band of one point has no width.
            bars += "".join(_path([high, low]) for high, low in zip(upper, lower, strict=True))
    if bands:
        yield f'<path class="oprag-band" d="{bands}" fill="{shown.colour}" fill-opacity="{opacity}"/>'
    if bars:
        yield f'<path class="oprag-bar" d="{bars}" stroke="{shown.colour}" stroke-width="1.5"/>'


def _line(line: Line, plot: Plot, shown: Look, *, points: bool) -> Iterator[str]:
    runs = list(_runs(line, lambda point: point.y is not None))
    joined = "".join(_path(_places(run, plot, "y")) for run in runs if len(run) > 1)
    if joined:
        dash = f' stroke-dasharray="{shown.dash}"' if shown.dash else ""
        yield (
            f'<path class="oprag-line" d="{joined}" fill="none" stroke="{shown.colour}" stroke-width="2"{dash}>'
            f"{tooltip(line.name)}</path>"
        )
    if points or not joined:
        yield f'<g class="oprag-points" {shown.point()}>'
        for point in (point for run in runs for point in run):
            place = marker(shown.shape, *_places([point], plot, "y")[0])
            yield f'<path d="{place}">{_tip(line, point, plot)}</path>'
        yield "</g>"


def _thin(line: Line, plot: Plot) -> Iterator[str]:
    runs = _runs(line, lambda point: point.y is not None)
    # One point alone is a dot: a line of no length with round ends.
    joined = "".join(
        _path(places * 2 if len(places) == 1 else places) for places in (_places(run, plot, "y") for run in runs)
    )
    if joined:
        yield (
            f'<path class="oprag-line" d="{joined}" fill="none" stroke="{OTHERS.colour}" stroke-width="1"'
            f' stroke-opacity="0.5" stroke-linecap="round">{tooltip(line.name)}</path>'
        )


def _rings(lines: Sequence[Line], plot: Plot) -> Iterator[str]:
    for line in lines:
        for point in line.points:
            if point.mark and point.y is not None:
                drawn = ring(*_places([point], plot, "y")[0])
                yield f"{drawn.removesuffix('/>')}>{_tip(line, point, plot)}</circle>"


def _tip(line: Line, point: LinePoint, plot: Plot) -> str:
    height = "" if point.y is None else plot.y.words(point.y)
    interval = "" if point.low is None or point.high is None else f" ({figure(point.low)} to {figure(point.high)})"
    return tooltip(line.name, plot.x.words(point.x), height + interval)


def _entries(looks: Sequence[tuple[Look, Line]], others: int, marked: str) -> Iterator[tuple[Look | None, str]]:
    yield from ((shown, line.name) for shown, line in looks)
    if others:
        yield OTHERS, f"{others} more, each named where one points at it"
    if marked:
        yield None, marked


def _names(lines: Sequence[Line]) -> str:
    shown = [line.name for line in lines[:MOST_NAMED]]
    more = f" and {len(lines) - len(shown)} more" if len(lines) > len(shown) else ""
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    return f"{count}: {'; '.join(shown)}{more}."
