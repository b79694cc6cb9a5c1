"""Text for values, numbers and settings, shared by Python, the terminal and the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import floor, log10
from typing import Any

from oprag.chunk import counted
from oprag.compare.stats import Difference, Summary
from oprag.masking import describe, shown

__all__ = [
    "amount",
    "assignments",
    "counted",
    "difference_text",
    "interval",
    "listed",
    "money_text",
    "name_of",
    "named",
    "printable",
    "score",
    "share",
    "spread",
    "value_text",
]

# Axes whose values are clear without the name of the axis.
_BARE = ("data", "splitter", "embedder", "search", "store", "order", "method", "model")
_MAX_VALUE_LENGTH = 200  # characters


def value_text(value: Any) -> str:
    """Text of an axis value."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return shown(value, _MAX_VALUE_LENGTH) if value.strip() else describe(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def named(values: Mapping[str, Any], names: Collection[str]) -> str:
    """A setting for people, such as "source, k=8": its values on those of the given axes that have an effect in it."""
    parts = [
        value_text(values[name]) if name in _BARE else f"{name}={value_text(values[name])}"
        for name in sorted(names, key=lambda name: name != "method")
        if name in values
    ]
    return ", ".join(parts)


def name_of(values: Mapping[str, Any], names: Collection[str]) -> str:
    """Same as `named`, but falls back to the method if the setting has no values on these axes."""
    return named(values, names) or value_text(values.get("method", "all settings"))


def score(value: float | None) -> str:
    """A score with three decimals."""
    return "–" if value is None else f"{value:z.3f}"


def interval(summary: Summary | None) -> str:
    """A mean with its interval, as far as they are known."""
    return "–" if summary is None else summary.describe()


def difference_text(difference: Difference) -> str:
    """A difference with its interval, and a star if it is significant."""
    return f"{difference}{' *' if difference.significant else ''}"


def money_text(value: float | None) -> str:
    """An amount in the currency of the prices: two decimals from 1 up, else two significant digits."""
    if value is None:
        return "–"
    return f"{value:,.{2 if value >= 1 or not value else 1 - floor(log10(value))}f}"


def listed(texts: Sequence[str]) -> str:
    """Join texts with commas and "and"."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def spread(median: float | None, deviation: float | None, digits: int) -> str:
    """A median with its standard deviation."""
    if median is None:
        return "–"
    return f"{median:z,.{digits}f}" + ("" if deviation is None else f" ± {deviation:,.{digits}f}")


def amount(value: float | None) -> str:
    """A number of tokens or calls, or a time."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}" if value >= 1 else f"{value:.3f}"


def share(value: float | None) -> str:
    """A share in percent."""
    return "–" if value is None else f"{100 * value:z.1f} %"


def printable(value: Any) -> str:
    """A value as written in an experiment file, with unprintable characters such as terminal escapes replaced."""
    text = "none" if value is None else shown(str(value), _MAX_VALUE_LENGTH)
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def assignments(values: Mapping[str, Any], axes: Collection[str]) -> str:
    """A setting for copying, such as "order=source, k=8", with values as written in an experiment file."""
    return ", ".join(f"{name}={printable(values[name])}" for name in axes if name in values)
