"""Chart axes: their scale and tick labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor, log10

from oprag.compare.report.charts.svg import WIDTH, label, paint, pixels
from oprag.text_table import escaped

__all__ = ["ChartAxis", "Plot", "Scale", "figure", "scale_of", "span_of"]

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
