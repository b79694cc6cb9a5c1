"""SVG charts of a report: line charts with error bars, scatter plots with a Pareto front, and forest plots.

Charts do not use a plotting library: its images are large, do not follow dark mode, and are not legible on a phone.
Titles and labels are HTML text outside the chart, which wraps; the SVG only contains numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor, log10
from typing import NamedTuple

from oprag.compare.stats.difference import Difference
from oprag.text_table import escaped

__all__ = ["CHART_STYLE", "ChartAxis", "Point", "Series", "forest_marks", "legend", "line_chart", "scatter_chart"]

WIDTH = 360.0
"""The width of a chart, in pixels: that of the narrowest phones, so that 12-pixel text is never scaled down."""

# Colors for light and dark mode. The contrast with the page is at least 3:1 for data and 4.5:1 for text. The six data
# colors are at least 20 apart in CIELAB, also with simulated color blindness (Machado et al. 2009).
COLOURS = {
    "1": ("#0f62b5", "#4a93ff"),
    "2": ("#ad2c0c", "#e07a2a"),
    "3": ("#0f9d68", "#20e0a0"),
    "4": ("#c4589a", "#bf7ab5"),
    "5": ("#a68f00", "#efe315"),
    "6": ("#2b2f36", "#d5ecf5"),
    "ink": ("#222222", "#e6edf3"),
    "quiet": ("#59636e", "#9aa4af"),
    "grid": ("#e3e7eb", "#2b323b"),
    "page": ("#ffffff", "#0d1117"),
}
_HUES = 6
_DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "13 4")
# SVG paths around the point: circle, square, triangle, diamond, plus, inverted triangle, cross, bar. Eight, so that the
# six colors repeat with other shapes.
_SHAPES = (
    "m-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0z",
    "m-3.4-3.4h6.8v6.8h-6.8z",
    "m0-4.8l4.6 8h-9.2z",
    "m0-5l4.6 5l-4.6 5l-4.6-5z",
    "m-1.5-4.6h3v3.1h3.1v3h-3.1v3.1h-3v-3.1h-3.1v-3h3.1z",
    "m0 4.8l4.6-8h-9.2z",
    "m0-1.7l2.9-2.9l1.7 1.7l-2.9 2.9l2.9 2.9l-1.7 1.7l-2.9-2.9l-2.9 2.9l-1.7-1.7l2.9-2.9l-2.9-2.9l1.7-1.7z",
    "m-5-1.9h10v3.8h-10z",
)
MAX_NAMED = 16
"""Maximum number of series with a distinct style; more could not be distinguished on one chart."""


class Look(NamedTuple):
    """The style of the points and the line of a series.

    Attributes:
        colour: The value of `fill` and `stroke`.
        dash: The value of `stroke-dasharray`; empty for a solid line.
        shape: The SVG path of a marker, relative to its point.
    """

    colour: str
    dash: str
    shape: str

    def marker(self, x: float, y: float) -> str:
        """The attribute `d` of the path of a point's marker."""
        return f"M{pixels(x)} {pixels(y)}{self.shape}"

    @property
    def line(self) -> str:
        """The XML attributes of the line."""
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        return f'fill="none" stroke="{self.colour}" stroke-width="2"{dash}'


def paint(name: str) -> str:
    """A CSS color variable; its fallback is the color for light mode."""
    return f"var(--oprag-{name},{COLOURS[name][0]})"


CIRCLE, DIAMOND = _SHAPES[0], _SHAPES[3]
OTHERS = Look(paint("quiet"), "", CIRCLE)
"""The style of all series after the first `MAX_NAMED`."""


def look(number: int) -> Look:
    """The style of a series, by its number from 0."""
    if number >= MAX_NAMED:
        return OTHERS
    return Look(
        paint(str(number % _HUES + 1)), dash=_DASHES[number % len(_DASHES)], shape=_SHAPES[number % len(_SHAPES)]
    )


def ring(x: float, y: float, inside: str = "") -> str:
    """A ring around a point."""
    place = f'cx="{pixels(x)}" cy="{pixels(y)}"'
    return f'<circle {place} r="8" fill="none" stroke="{paint("ink")}" stroke-width="1.6">{inside}</circle>'


def sample(shown: Look | None, *, line: bool) -> str:
    """An SVG sample of a style for a legend; None for the ring around a point."""
    width = 30 if line else 16
    if shown is None:
        drawn = ring(width / 2, 9)
    else:
        drawn = f'<path d="M0 9H{width}" {shown.line}/>' if line else ""
        drawn += f'<path d="{shown.marker(width / 2, 9)}" fill="{shown.colour}"/>'
    return (
        f'<svg class="oprag-key" viewBox="0 0 {width} 18" width="{width}" height="18" aria-hidden="true">{drawn}</svg>'
    )


def pixels(value: float) -> str:
    """A coordinate with at most one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def label(x: float, y: float, text: str, *, anchor: str) -> str:
    """A tick label of an axis."""
    return f'<text x="{pixels(x)}" y="{pixels(y)}" text-anchor="{anchor}" fill="{paint("quiet")}">{text}</text>'


def tooltip(*lines: str) -> str:
    """A tooltip for the SVG element that contains it."""
    return f"<title>{escaped(chr(10).join(line for line in lines if line))}</title>"


def _css_variables(dark: int) -> str:
    return ";".join(f"--oprag-{name}:{pair[dark]}" for name, pair in COLOURS.items())


CHART_STYLE = f":root{{{_css_variables(0)}}}@media (prefers-color-scheme:dark){{:root{{{_css_variables(1)}}}}}"
"""The CSS variables of the colors, for light and dark mode."""


_MAX_TICKS = 6
_DIGIT_WIDTH = 6.8  # pixels, at a font size of 12 pixels
_LOG_SCALE_RATIO = 8
"""An axis of positive values is logarithmic if the largest is at least this many times the smallest."""
_TOLERANCE = 1e-9
"""Values that differ by less, absolutely or relatively, are equal: the difference may be a rounding error."""


@dataclass(frozen=True)
class ChartAxis:
    """An axis of a chart.

    Attributes:
        title: The quantity on the axis.
        unit: Its unit, such as "tokens"; empty if it has none.
    """

    title: str
    unit: str = ""

    @property
    def label(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def words(self, value: float) -> str:
        """A value with its unit, such as "4,096 tokens"; without a unit, after the title of the axis."""
        return f"{figure(value)} {self.unit}" if self.unit else f"{self.title} {figure(value)}"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Mapping from values to pixels: `low` is at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    numbers: Sequence[tuple[float, str]]
    logarithmic: bool

    def place(self, value: float) -> float:
        """The pixel coordinate of a value."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = log10(low), log10(high), log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def scale_of(values: Sequence[float], start: float, end: float, *, logarithmic: bool = False) -> Scale:
    """A scale for one or more values, with at most six ticks; a linear scale starts and ends at a tick."""
    low, high = min(values), max(values)
    if high - low <= _TOLERANCE * max(1.0, -low, high):
        wider = abs(low) / 2 if abs(low) > _TOLERANCE else 0.5
        low, high = (low / 2, high * 2) if logarithmic else (low - wider, high + wider)
    if logarithmic:
        numbers = _powers(low, high)
    else:
        numbers = _steps(low, high)
        low, high = numbers[0][0], numbers[-1][0]
    return Scale(low=low, high=high, start=start, end=end, numbers=numbers, logarithmic=logarithmic)


def _steps(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks from at most `low` to at least `high`, in steps of 1, 2 or 5 times a power of ten."""
    power = floor(log10(high - low))
    step, exponent = next(
        (step, exponent)
        for exponent, factor in product(range(power - 1, power + 2), (1, 2, 5))
        if (high - low) / (step := factor * 10.0**exponent) <= _MAX_TICKS - 2
    )
    places = range(floor(low / step + _TOLERANCE), ceil(high / step - _TOLERANCE) + 1)
    return [(place * step, f"{place * step:,.{max(0, -exponent)}f}") for place in places]


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks of a logarithmic scale: 1 2 5 10 20 50 if there are at most six, else powers of ten or some of them."""
    found: list[float] = []
    for factors in ((1, 2, 5), (1,)):
        powers = product(range(floor(log10(low)), ceil(log10(high)) + 1), factors)
        found = [value for exponent, factor in powers if low <= (value := factor * 10.0**exponent) <= high]
        if len(found) <= _MAX_TICKS:
            break
    found = found[:: ceil(len(found) / _MAX_TICKS) or 1]
    return [(value, figure(value)) for value in (found if len(found) > 1 else (low, high))]


def figure(value: float) -> str:
    """A number as text: four significant digits below 1,000, whole numbers above."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot area with two axes."""

    x: Scale
    y: Scale

    @classmethod
    def of(cls, across: Sequence[float], upwards: Sequence[float]) -> Plot:
        """A plot area for these values, with margins for the tick labels at the left and below."""
        y = scale_of(upwards, 210, 8)
        left = 16 + _DIGIT_WIDTH * max(len(text) for _, text in y.numbers)
        spread = min(across) > 0 and max(across) >= _LOG_SCALE_RATIO * min(across)
        return cls(x=scale_of(across, left, WIDTH - 12, logarithmic=spread), y=y)

    def picture(self, body: Iterable[str], *, title: str, description: str) -> str:
        """The chart as SVG, with `body` drawn in the plot area.

        Ids are hashes of the content, so that they are unique on a page and equal input gives equal output.
        """
        drawn = "\n".join([*self._axes(), *body])
        mark = hashlib.sha256("\0".join([title, description, drawn]).encode("utf-8", "replace")).hexdigest()[:12]
        width, height = pixels(WIDTH), pixels(self.y.start + 20)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="oprag-chart" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img" aria-labelledby="t-{mark} d-{mark}"'
            ' font-family="system-ui,sans-serif" font-size="12">\n'
            f'<title id="t-{mark}">{escaped(title)}</title>\n'
            f'<desc id="d-{mark}">{escaped(description)}</desc>\n'
            f"{drawn}\n</svg>\n"
        )

    def _axes(self) -> Iterator[str]:
        """The grid lines and tick labels of both axes, with a darker line at 0."""
        left, right, bottom = self.x.start - 10, WIDTH - 2, self.y.start
        upright = "".join(f"M{pixels(self.x.place(value))} 8V{pixels(bottom)}" for value, _ in self.x.numbers)
        level = "".join(f"M{pixels(left)} {pixels(self.y.place(value))}H{pixels(right)}" for value, _ in self.y.numbers)
        yield f'<path class="oprag-grid" d="{upright}{level}" fill="none" stroke="{paint("grid")}"/>'
        zero = f"M{pixels(left)} {pixels(bottom)}H{pixels(right)}"
        if self.y.low < 0 < self.y.high:
            zero += f"M{pixels(left)} {pixels(self.y.place(0))}H{pixels(right)}"
        yield f'<path d="{zero}" fill="none" stroke="{paint("quiet")}"/>'
        yield '<g class="oprag-y">'
        yield from (label(left - 4, self.y.place(value) + 4, text, anchor="end") for value, text in self.y.numbers)
        yield '</g><g class="oprag-x">'
        for value, text in self.x.numbers:
            half = _DIGIT_WIDTH * len(text) / 2
            yield label(min(self.x.place(value), WIDTH - half), bottom + 16, text, anchor="middle")
        yield "</g>"


def span_of(axis: ChartAxis, scale: Scale, values: Sequence[float]) -> str:
    """The range of the values on an axis, as a sentence."""
    logarithmic = ", logarithmic" if scale.logarithmic else ""
    return f"{axis.label}{logarithmic}: {figure(min(values))} to {figure(max(values))}."


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


_ROW_WIDTH, _ROW_HEIGHT, _INSET = 240, 24, 16


def forest_marks(rows: Sequence[tuple[Difference, bool]]) -> tuple[list[str], str]:
    """An SVG for each difference with its interval, and one for the axis below them, which contains 0.

    The marker is filled if a difference is significant; that of a pooled difference is a diamond.
    """
    values = [end for one, _ in rows for end in (one.mean, one.low, one.high) if end is not None]
    scale = scale_of([0.0, *values], _INSET, _ROW_WIDTH - _INSET)
    grid = "".join(f"M{pixels(scale.place(value))} 0V{_ROW_HEIGHT}" for value, _ in scale.numbers)
    grid_lines = f'<path d="{grid}" stroke="{paint("grid")}"/>'
    grid_lines += f'<path d="M{pixels(scale.place(0))} 0V{_ROW_HEIGHT}" stroke="{paint("quiet")}"/>'
    found: list[str] = []
    for one, pooled in rows:
        colour = paint("1" if one.significant else "quiet")
        line = ""
        if one.low is not None and one.high is not None:
            ends = f"M{pixels(scale.place(one.low))} 12H{pixels(scale.place(one.high))}"
            line = f'<path d="{ends}" stroke="{colour}" stroke-width="{3 if pooled else 1.6}"/>'
        if one.mean is not None:
            fill = colour if one.significant else paint("page")
            shape = f"M{pixels(scale.place(one.mean))} 12{DIAMOND if pooled else CIRCLE}"
            line += f'<path d="{shape}" fill="{fill}" stroke="{colour}" stroke-width="1.6"/>'
        found.append(_drawn(grid_lines + line))
    numbers = (label(scale.place(value), 15, text, anchor="middle") for value, text in scale.numbers)
    return found, _drawn("".join(numbers))


def _drawn(body: str) -> str:
    # Hidden from screen readers, since the table row contains the same numbers.
    return (
        f'<svg class="oprag-row" viewBox="0 0 {_ROW_WIDTH} {_ROW_HEIGHT}" width="{_ROW_WIDTH}" height="{_ROW_HEIGHT}"'
        f' font-size="12" aria-hidden="true">{body}</svg>'
    )
