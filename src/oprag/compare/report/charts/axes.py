"""Axes: the numbers on them, and where values are between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor, log10

from oprag.compare.report.charts.svg import WIDTH, label, paint, pixels

__all__ = ["Axis", "Plot", "Scale", "figure", "scale_of", "span_of"]

_MOST_NUMBERS = 6
_LETTER = 6.8  # pixels of a digit of 12 pixels
_LARGEST, _LEAST = 1e300, 1e-290
"""The difference of two larger values may be infinite, and a step between smaller ones 0."""
_ALIKE = 1e-9
"""Values that differ by less of their size are alike: the difference may be one of rounding."""
_SLACK = 1e-9
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_HUGE, _TINY = 1e12, 1e-4


@dataclass(frozen=True)
class Axis:
    """An axis of a chart.

    Attributes:
        title: What it shows.
        unit: In what it is counted, such as "tokens".
        logarithmic: Whether equal distances are equal factors; for values above 0.
    """

    title: str
    unit: str = ""
    logarithmic: bool = False

    @property
    def label(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def words(self, value: float) -> str:
        """A value with its unit, such as 4,096 tokens; without a unit after the title of the axis."""
        return f"{figure(value)} {self.unit}" if self.unit else f"{self.title} {figure(value)}"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where values are on a drawing: `low` at `start`, `high` at `end`, in pixels."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    numbers: Sequence[tuple[float, str]] = ()

    def place(self, value: float) -> float:
        """Where a value is; what is outside is at the border."""
        low, high = self.low, self.high
        value = min(max(value, low), high)
        if self.axis.logarithmic:
            low, high, value = log10(low), log10(high), log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def scale_of(axis: Axis, values: Sequence[float], start: float, end: float, *, around: bool = False) -> Scale:
    """A scale for values, of which there is at least one, with at most six numbers.

    Args:
        axis: The axis.
        values: The values; above 0 on a logarithmic axis.
        start: Where the lowest is, in pixels.
        end: Where the highest is.
        around: Whether the scale goes on to the next number at both ends.
    """
    low, high = (min(max(end, -_LARGEST), _LARGEST) for end in (min(values), max(values)))
    if high - low <= _ALIKE * max(abs(low), abs(high), _LEAST):
        wider = abs(low) / 2 if abs(low) > _LEAST else 0.5
        low, high = (low / 2, high * 2) if axis.logarithmic else (low - wider, high + wider)
    if axis.logarithmic:
        numbers = _powers(low, high)
    else:
        step, exponent = _step(high - low)
        first, last = (floor, ceil) if around else (ceil, floor)
        slack = _SLACK if not around else -_SLACK
        places = range(first(low / step - slack), last(high / step + slack) + 1)
        texts = _texts([place * step for place in places], exponent)
        numbers = [(place * step, text) for place, text in zip(places, texts, strict=True)]
        if around:
            low, high = numbers[0][0], numbers[-1][0]
    return Scale(axis=axis, low=low, high=high, start=start, end=end, numbers=numbers)


def _step(extent: float) -> tuple[float, int]:
    """The smallest 1, 2 or 5 times a power of ten that needs at most six numbers, and the power."""
    power = floor(log10(extent)) - 1
    for exponent, factor in product(range(power, power + 3), (1, 2, 5)):
        step = factor * 10.0**exponent
        if extent / step <= _MOST_NUMBERS - 2:
            return step, exponent
    raise AssertionError(extent)  # pragma: no cover - a hundredth of the extent is below a sixth of it


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    """Numbers on a logarithmic scale: 1 2 5 10 20 50 if they are few enough, else powers of ten or some of them."""
    first, last = floor(log10(low)), ceil(log10(high))
    for factors, every in (((1, 2, 5), 1), ((1,), 1), ((1,), 1 + (last - first) // _MOST_NUMBERS)):
        found = [
            factor * 10.0**exponent
            for exponent in range(first, last + 1)
            for factor in factors
            if exponent % every == 0 and low * (1 - _SLACK) <= factor * 10.0**exponent <= high * (1 + _SLACK)
        ]
        if len(found) <= _MOST_NUMBERS:
            break
    return [(value, _short(value)) for value in (found if len(found) > 1 else (low, high))]


def figure(value: float) -> str:
    """A number in a sentence: four digits that count, whole from a thousand on."""
    size = abs(value)
    if size >= _HUGE or 0 < size < _TINY or size < 1000:
        return _signed(f"{value:.4g}")
    return _signed(f"{value:,.0f}")


def _short(value: float) -> str:
    size = abs(value)
    if size >= _HUGE or 0 < size < _TINY:
        return _signed(f"{value:.2g}")
    unit, suffix = next((pair for pair in _SUFFIXES if size >= pair[0]), (1.0, ""))
    return _signed(f"{value / unit:.3g}{suffix}")


def _texts(values: Sequence[float], exponent: int) -> list[str]:
    """The numbers of a linear scale, all with the same decimals and the same unit."""
    largest = max(map(abs, values), default=0.0)
    if largest >= _HUGE or 0 < largest < _TINY:
        digits = max(0, floor(log10(largest)) - exponent)
        return [_signed(f"{value:.{digits}e}") if value else "0" for value in values]
    unit, suffix = next((pair for pair in _SUFFIXES if largest >= 10_000 and largest >= pair[0]), (1.0, ""))
    decimals = max(0, round(log10(unit)) - exponent)
    return [_signed(f"{value / unit:,.{decimals}f}{suffix}") if value else "0" for value in values]


def _signed(text: str) -> str:
    """A number with the sign that is as wide as a digit, and a power of ten without zeros before it."""
    return re.sub(r"e([+-])0*(?=\d)", lambda match: f"e{'-' if match[1] == '-' else ''}", text).replace("-", "−")


@dataclass(frozen=True, kw_only=True)
class Plot:
    """An area with two axes."""

    x: Scale
    y: Scale

    @classmethod
    def of(cls, axes: tuple[Axis, Axis], across: Sequence[float], upwards: Sequence[float], height: float) -> Plot:
        """The area for values, with room at the left and below for the numbers."""
        y = scale_of(axes[1], upwards, height, 8, around=True)
        left = 6 + _LETTER * max(len(text) for _, text in y.numbers)
        return cls(x=scale_of(axes[0], across, left + 10, WIDTH - 12), y=y)

    @property
    def height(self) -> float:
        """The height of a drawing of it."""
        return self.y.start + 20

    def drawn(self) -> Iterator[str]:
        """The lines and numbers of both axes, stronger at 0."""
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
            half = _LETTER * len(text) / 2
            yield label(min(self.x.place(value), WIDTH - half), bottom + 16, text, anchor="middle")
        yield "</g>"


def span_of(axis: Axis, values: Sequence[float]) -> str:
    """From where to where the values on an axis go, as a sentence."""
    scale = ", logarithmic" if axis.logarithmic else ""
    return f"{axis.label}{scale}: {figure(min(values))} to {figure(max(values))}."
