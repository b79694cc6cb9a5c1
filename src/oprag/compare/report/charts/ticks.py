"""Where an axis has numbers: at multiples of 1, 2 or 5, or one above the other by a factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from math import ceil, floor, log10
from typing import NamedTuple

from oprag.compare.report.charts.numbers import short, tick_texts

__all__ = ["Fits", "Tick", "linear_ticks", "logarithmic_ticks"]

_SLACK = 1e-9
_DECADES = (1, 2, 3, 5, 10, 20, 50, 100)
_LEAST_FACTOR = 3.9
"""A logarithmic axis that spans less has its numbers at the multiples of a step."""
_FAR = 100.0


class Tick(NamedTuple):
    """A number on an axis."""

    value: float
    text: str


Fits = Callable[[Sequence[Tick]], bool]
"""Whether there is room for these."""


def linear_ticks(low: float, high: float, fits: Fits, *, whole: bool = False, around: bool = False) -> list[Tick]:
    """The multiples of the smallest step for which there is room; a step is 1, 2 or 5 times a power of ten.

    Args:
        low: Where the axis begins.
        high: Where it ends, above `low`.
        fits: Whether there is room.
        whole: Whether the values are whole numbers, so that there is nothing between two of them.
        around: Whether the next multiples below and above are taken too where the axis ends between two.
    """
    # With the next ones around there are three at least where the axis goes from below 0 to above it.
    least = 3 if around else 1
    ticks: list[Tick] = []
    for mantissa, exponent in _steps(high - low):
        if whole and exponent < 0:
            continue
        values = _multiples(low, high, mantissa, exponent, around=around)
        if not values:
            return ticks[:1]
        ticks = [Tick(value, text) for value, text in zip(values, tick_texts(values, exponent), strict=True)]
        if len(ticks) <= least or fits(ticks):
            break
    return ticks


def logarithmic_ticks(low: float, high: float, fits: Fits) -> list[Tick]:
    """Numbers that are a factor apart: 1k 2k 4k 8k, else 1 4 16 64, else 1 2 5 10 20 50, else powers of ten.

    Args:
        low: Where the axis begins, above 0.
        high: Where it ends, above `low`.
        fits: Whether there is room.
    """
    factor = high / low
    if factor < _LEAST_FACTOR:
        return linear_ticks(low, high, fits)
    ticks: list[Tick] = []
    for values in _ladders(low, high):
        ticks = [Tick(value, short(value)) for value in values]
        if len(ticks) > 1 and fits(ticks):
            return ticks
    # Few that a factor apart are there may be many at equal distances, but not where it is a long way.
    return linear_ticks(low, high, fits) if factor < _FAR else ticks[:1]


def _steps(span: float) -> Iterator[tuple[int, int]]:
    for exponent in count(floor(log10(span)) - 2):
        for mantissa in (1, 2, 5):
            yield mantissa, exponent


def _multiples(low: float, high: float, mantissa: int, exponent: int, *, around: bool) -> list[float]:
    step = _decimal(mantissa, exponent)
    if around:
        first, last = floor(low / step + _SLACK), ceil(high / step - _SLACK)
    else:
        first, last = ceil(low / step - _SLACK), floor(high / step + _SLACK)
    return [_decimal(number * mantissa, exponent) for number in range(first, last + 1)]


def _decimal(digits: int, exponent: int) -> float:
    """As written, so 3 times 0.1 is 0.3."""
    return float(f"{digits}e{exponent}")


def _ladders(low: float, high: float) -> Iterator[list[float]]:
    for factor in (2, 4):
        yield from _powers(low, high, factor)
    first, last = floor(log10(low)), floor(log10(high))
    if last - first <= 12:
        values = [_decimal(digit, exponent) for exponent in range(first, last + 1) for digit in (1, 2, 5)]
        yield _within(values, low, high)
    for step in _DECADES:
        yield _within([_decimal(1, exponent) for exponent in range(first - first % step, last + 1, step)], low, high)


def _powers(low: float, high: float, factor: int) -> Iterator[list[float]]:
    """1, 2, 4 … 512, or thousands or millions of that; with a few below one, which are 500, 250 and 125."""
    for exponent in range(-3, 10, 3):
        unit = float(f"1e{exponent}")
        if low >= unit / 8 and high < 1_000 * unit:
            yield _within([unit * 2.0**power for power in range(-3, 10) if power % (factor // 2) == 0], low, high)


def _within(values: Sequence[float], low: float, high: float) -> list[float]:
    return [value for value in values if low * (1 - _SLACK) <= value <= high * (1 + _SLACK)]
