"""Values along an axis: what it is called, where it begins and ends, and where on the drawing a value stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, log10
from numbers import Real

from oprag.compare.report.charts.numbers import figure
from oprag.compare.report.charts.texts import SMALL, text_width
from oprag.compare.report.charts.ticks import Tick, linear_ticks, logarithmic_ticks
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_bool, check_text

__all__ = ["Axis", "Scale", "across", "number", "upwards"]

_LARGEST = 1e300
"""The difference of two larger ones may be no number."""
_ALIKE = 1e-9
"""Values that differ by less of their size are alike: the difference may be one of rounding."""
_INSET = 8.0
_MOST_ACROSS = 9
_APART = 26.0


@dataclass(frozen=True)
class Axis:
    """An axis of a chart.

    Attributes:
        title: What it shows.
        unit: In what it is counted, such as "tokens"; stands behind the title.
        logarithmic: Whether equal distances are equal factors; for values above 0.
        least: A value that the axis holds in any case, such as 0; it goes on below where there are values.
        most: The same above.

    Raises:
        OptionError: A value is of the wrong type or no finite number, `least` is not below `most`, or one of them is
            not above 0 on a logarithmic axis.
    """

    title: str
    unit: str = ""
    logarithmic: bool = False
    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        check_text("the title of an axis", self.title)
        check_text("the unit of an axis", self.unit)
        check_bool("logarithmic", self.logarithmic)
        for name in ("least", "most"):
            value = getattr(self, name)
            if value is not None and number(value, f"{name} of the axis {self.title!r}") <= 0 and self.logarithmic:
                raise OptionError(f"{name} of a logarithmic axis must be above 0, got {describe(value)}", value)
        if self.least is not None and self.most is not None and self.least >= self.most:
            raise OptionError(
                f"least must be below most, got {describe(self.least)} and {describe(self.most)}", self.least
            )

    @property
    def label(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where values stand.

    Attributes:
        axis: The axis.
        low: The least value of the axis.
        high: The highest.
        start: Where `low` stands, in pixels of the drawing.
        end: Where `high` stands.
        ticks: Where it has numbers.
    """

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[Tick] = ()

    def place(self, value: float) -> float:
        """Where the value stands, in pixels of the drawing."""
        low, high = self.low, self.high
        if self.axis.logarithmic:
            low, high, value = log10(low), log10(high), log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def zero(self) -> float | None:
        """Where 0 stands, if it is between the ends."""
        return self.place(0) if not self.axis.logarithmic and self.low < 0 < self.high else None

    def words(self, value: float) -> str:
        """A value in words: 4,096 tokens, or the title of the axis and the number where there is no unit."""
        axis = self.axis
        return f"{figure(value)} {axis.unit}" if axis.unit else f"{axis.title} {figure(value)}"


def number(value: float, where: str) -> float:
    """The value as a float that a chart can show.

    Args:
        value: The value.
        where: Whose it is, for the message.

    Raises:
        OptionError: It is no finite number, or beyond 1e300.
    """
    try:
        finite = isinstance(value, Real) and isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise OptionError(f"the value of {where} must be a finite number, got {describe(value)}", value)
    given = float(value)
    if abs(given) > _LARGEST:
        raise OptionError(
            f"the value of {where} must lie between −1e300 and 1e300 to be drawn, got {describe(value)}", value
        )
    return given


def across(axis: Axis, values: Iterable[float], left: float, right: float) -> Scale:
    """A scale from left to right that holds the values, of which there is one at least.

    Where all of them are whole, as counts are, so are the numbers of a linear one.

    Raises:
        OptionError: The axis is logarithmic and a value is not above 0.
    """
    values = list(values)
    low, high = _extent(axis, values)
    whole = all(value == int(value) for value in values)
    scale = Scale(axis=axis, low=low, high=high, start=left + _INSET, end=right - _INSET)

    def fits(ticks: Sequence[Tick]) -> bool:
        ends = [(scale.place(tick.value), text_width(tick.text, SMALL) / 2) for tick in ticks]
        return len(ticks) <= _MOST_ACROSS and all(
            one + half + 7 <= other - other_half for (one, half), (other, other_half) in pairwise(ends)
        )

    ticks = logarithmic_ticks(low, high, fits) if axis.logarithmic else linear_ticks(low, high, fits, whole=whole)
    return replace(scale, ticks=tuple(ticks))


def upwards(axis: Axis, values: Iterable[float], bottom: float, top: float, *, whole: bool = False) -> Scale:
    """A scale from the bottom to the top that holds the values, of which there is one at least.

    A linear one begins and ends at a number.

    Raises:
        OptionError: The axis is logarithmic and a value is not above 0.
    """
    low, high = _extent(axis, values)
    inset = _INSET if axis.logarithmic else 0
    scale = Scale(axis=axis, low=low, high=high, start=bottom - inset, end=top + inset)

    def fits(ticks: Sequence[Tick]) -> bool:
        if not axis.logarithmic:
            return (bottom - top) / (len(ticks) - 1) >= _APART
        places = [scale.place(tick.value) for tick in ticks]
        return all(one - other >= _APART for one, other in pairwise(places))

    if axis.logarithmic:
        return replace(scale, ticks=tuple(logarithmic_ticks(low, high, fits)))
    ticks = linear_ticks(low, high, fits, whole=whole, around=True)
    return replace(scale, low=ticks[0].value, high=ticks[-1].value, ticks=tuple(ticks))


def _extent(axis: Axis, values: Iterable[float]) -> tuple[float, float]:
    there = [*values, *(value for value in (axis.least, axis.most) if value is not None)]
    low, high = min(there), max(there)
    if axis.logarithmic and low <= 0:
        raise OptionError(
            f"the axis {axis.title!r} is logarithmic, so every value on it must be above 0, got {describe(low)}; "
            "leave such values out, or use a linear axis",
            low,
        )
    size = max(abs(low), abs(high))
    if high - low > size * _ALIKE and high - low > 1 / _LARGEST:
        return low, high
    if axis.logarithmic:
        return low / 2, high * 2
    around = size / 10 if size > 1 / _LARGEST else 1.0
    return low - around, high + around
