"""Numbers as people read them on a chart."""

from __future__ import annotations

import re
from math import floor, log10

__all__ = ["figure", "short", "signed", "tick_texts"]

_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_HUGE, _TINY = 1e12, 1e-4
_PLAIN_THOUSANDS = 10_000  # below it 2,500 is read more easily than 2.5k


def signed(text: str) -> str:
    """A number in digits, with the sign that is as wide as a digit, and a power of ten without zeros before it."""
    return re.sub(r"e([+-])0*(?=\d)", lambda match: f"e{'-' if match[1] == '-' else ''}", text).replace("-", "−")


def figure(value: float) -> str:
    """A number for a tooltip: four digits that count, whole from a thousand on."""
    size = abs(value)
    if size >= _HUGE or 0 < size < _TINY:
        return signed(f"{value:.4g}")
    if size >= 1000:
        return signed(f"{value:,.0f}")
    return signed(f"{value:.4g}")


def short(value: float) -> str:
    """A number on a logarithmic axis: 0.25, 500, 1k, 2.5k, 1M."""
    size = abs(value)
    if size >= _HUGE or 0 < size < _TINY:
        return signed(f"{value:.3g}")
    for unit, suffix in _SUFFIXES:
        if size >= unit:
            return signed(f"{value / unit:.6g}{suffix}")
    return signed(f"{value:.6g}")


def tick_texts(values: list[float], exponent: int) -> list[str]:
    """The numbers of a linear axis, all with the same decimals and the same unit.

    Args:
        values: Multiples of the step.
        exponent: The power of ten of the step.
    """
    largest = max(map(abs, values), default=0.0)
    if largest >= _HUGE or (exponent < -4 and 0 < largest < 1e-3):
        digits = max(0, floor(log10(largest)) - exponent)
        return [signed(f"{value:.{digits}e}") if value else "0" for value in values]
    if largest >= _PLAIN_THOUSANDS:
        unit, suffix = next(pair for pair in _SUFFIXES if largest >= pair[0])
        decimals = max(0, round(log10(unit)) - exponent)
        # As wide as that, the suffix saves nothing.
        if decimals <= 2:
            return [signed(f"{value / unit:.{decimals}f}{suffix}") if value else "0" for value in values]
    decimals = max(0, -exponent)
    return [signed(f"{value:,.{decimals}f}") if value else "0" for value in values]
