"""Text for values, numbers and settings, shared by Python, the terminal and the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import floor, log10
from typing import Any

from oprag._internal.masking import describe, shown
from oprag.chunk import counted
from oprag.compare.stats import Difference

__all__ = ["amount", "counted", "difference_text", "listed", "money_text", "named", "value_text"]

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


def difference_text(difference: Difference) -> str:
    """A difference with its interval, and a star if it is significant."""
    return f"{difference}{' *' if difference.significant else ''}"


def money_text(value: float | None) -> str:
    """An amount in the currency of the prices: two decimals from 1 up, else two significant digits."""
    if value is None:
        return "–"
    return f"{value:,.{2 if value >= 1 or not value else 1 - floor(log10(value))}f}"


def listed(texts: Sequence[str], longest: int = 5) -> str:
    """Join texts with commas and "and"; of more than the longest list, the first ones and the number of the others."""
    if len(texts) > longest:
        texts = [*texts[:longest], f"{len(texts) - longest:,} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def amount(value: float | None) -> str:
    """A number of tokens or calls, or a time."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}" if value >= 1 else f"{value:.3f}"
