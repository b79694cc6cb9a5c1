"""Converts dirty metadata values to comparable keys.

Stores turn numbers into strings and floats, splitters write -1 for "not found", and readers write page labels. These
functions decide which values are valid and make them comparable. They never raise, whatever the value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Set
from decimal import Decimal
from numbers import Real
from typing import Any

from oprag.chunk import Key

__all__ = ["NUMBERED", "TOO_LARGE", "comparable", "label_keys", "natural_key", "ordinal", "whole"]

# Strings, compiled on first use: most metadata never need them.
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_ROMAN = r"m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})"
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_DIGITS = r"([0-9]+)"
# Longer strings are not ordinals, and int() refuses very long ones.
_MAX_NUMBER_LENGTH = 64
TOO_LARGE = 10**_MAX_NUMBER_LENGTH
_MAX_LABEL_LENGTH = 200  # characters; a longer string is not a page label
_MAX_NUMBERS = 100  # numbers in a name that are compared by value; a name can be a data: URL

# The first element of a label key: roman labels sort before numbers, numbers before other labels.
_ROMAN_LABEL, NUMBERED, _OTHER_LABEL = 0, 1, 2


def ordinal(value: Any) -> int | float | None:
    """Return the value as a number to sort by; None unless it is finite, not negative and not a boolean."""
    if type(value) is int:
        return value if 0 <= value < TOO_LARGE else None
    if value is None:
        return None  # most chunks state no end, and the checks below take a tenth of the time of ordering
    if isinstance(value, str):
        return _number(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        number = _non_negative(float(value))
        # Convert the value itself, not the float: a float cannot distinguish large integers.
        return ordinal(int(value)) if isinstance(number, int) else number  # type: ignore[arg-type]
    except (ValueError, OverflowError, TypeError, ArithmeticError):
        return None


def _number(text: str) -> int | float | None:
    text = text.strip()
    if len(text) > _MAX_NUMBER_LENGTH:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    return _non_negative(float(text)) if re.fullmatch(_NUMBER, text) else None


def _non_negative(number: float) -> int | float | None:
    if not math.isfinite(number) or number < 0:
        return None
    return int(number) if number.is_integer() else number


def whole(value: Any) -> int | None:
    """Return the value as a character offset, or None if it is not a non-negative integer."""
    number = ordinal(value)
    return number if isinstance(number, int) else None


def comparable(value: Any) -> int | float | str:
    """Return the value as a number, else as text, to compare values that stores return in different forms."""
    number = ordinal(value)
    if number is not None:
        return number
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - objects can raise anything, and Python refuses to show large integers
        return type(value).__name__


def natural_key(text: str) -> Key:
    """Return a natural sort key: "doc2" before "doc10", without case; digits of any length compare by value."""
    parts: list[tuple[int, int, str]] = []
    for index, part in enumerate(re.split(_DIGITS, text, maxsplit=_MAX_NUMBERS)):
        if index % 2:
            digits = part.lstrip("0")
            parts.append((0, len(digits), digits))
        elif part:
            parts.append((1, 0, part.casefold()))
    return (*parts, (-1, 0, text))


def label_keys(values: list[Any], *, any_label: bool) -> list[Key | None]:
    """Convert page values to keys: roman numerals, if all letters of their case are some, then numbers, then others."""
    labels = {value.strip() for value in values if isinstance(value, str)}
    letters = {text for text in labels if text.isascii() and text.isalpha() and (text.islower() or text.isupper())}
    roman = {text for text in letters if re.fullmatch(_ROMAN, text.lower())}
    cases_of_others = {text.isupper() for text in letters - roman}
    roman = {text for text in roman if text.isupper() not in cases_of_others}
    return [_label_key(value, roman, any_label=any_label) for value in values]


def _label_key(value: Any, roman: Set[str], *, any_label: bool) -> Key | None:
    number = ordinal(value)
    if number is not None:
        return (NUMBERED, number)
    text = value.strip() if isinstance(value, str) else ""
    if text in roman:
        return (_ROMAN_LABEL, _roman_value(text.lower()))
    is_label = any_label and text and len(text) <= _MAX_LABEL_LENGTH and not re.fullmatch(_NUMBER, text)
    return (_OTHER_LABEL, *natural_key(text)) if is_label else None


def _roman_value(text: str) -> int:
    digits = [_ROMAN_VALUES[letter] for letter in text]
    following = [*digits[1:], 0]
    return sum(-digit if digit < after else digit for digit, after in zip(digits, following, strict=True))
