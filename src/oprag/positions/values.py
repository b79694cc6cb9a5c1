"""Reading dirty metadata values as comparable keys.

Stores turn numbers into strings and floats, splitters write -1 for "not found", readers write page labels. These
functions say which values count and make them comparable. They never raise, whatever they are given.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from numbers import Real
from typing import Any

__all__ = ["NUMBERED", "TOO_LARGE", "Key", "finite", "label_keys", "natural_key", "ordinal", "whole"]

# Compiled when first needed, which most metadata never do.
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_BEGINS_A_NUMBER = frozenset("+-.0123456789")
_ROMAN = r"m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})"
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_DIGITS = r"([0-9]+)"
# Longer strings are not ordinals, and int() refuses very long ones.
_LONGEST_NUMBER = 64
TOO_LARGE = 10**_LONGEST_NUMBER

Key = tuple[Any, ...]

# What page labels sort by first.
_ROMAN_LABEL, NUMBERED, _OTHER_LABEL = 0, 1, 2


def ordinal(value: Any) -> int | float | None:
    """The value as a number to sort by, or None when it does not count.

    A value counts when it is a finite number or a numeric string, not negative, not boolean.
    """
    if type(value) is int:
        return value if 0 <= value < TOO_LARGE else None
    if value is None:
        return None
    if isinstance(value, str):
        return _number(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        number = _counting(float(value))
        # Straight from the value: a float cannot tell large whole numbers apart.
        return ordinal(int(value)) if isinstance(number, int) else number  # type: ignore[arg-type]
    except (ValueError, OverflowError, TypeError, ArithmeticError):
        return None


def _number(text: str) -> int | float | None:
    text = text.strip()
    if len(text) > _LONGEST_NUMBER:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    # Most texts are names, for which a look at the first character will do.
    return _counting(float(text)) if text[:1] in _BEGINS_A_NUMBER and re.fullmatch(_NUMBER, text) else None


def _counting(number: float) -> int | float | None:
    if not math.isfinite(number) or number < 0:
        return None
    return int(number) if number.is_integer() else number


def whole(value: Any) -> int | None:
    """The value as a character offset, or None when it is not a whole number from 0."""
    if type(value) is int:
        return value if 0 <= value < TOO_LARGE else None
    number = ordinal(value)
    return number if isinstance(number, int) else None


def finite(value: Any) -> float | None:
    """The value as a score, or None when it is not a finite number."""
    if value is None or isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def natural_key(text: str) -> Key:
    """A key that sorts texts as people do: "doc2" before "doc10", capitals beside small letters.

    Runs of digits compare by value. They compare as strings of their length, so a run of any length is safe.
    """
    parts: list[tuple[int, int, str]] = []
    for index, part in enumerate(re.split(_DIGITS, text)):
        if index % 2:
            digits = part.lstrip("0")
            parts.append((0, len(digits), digits))
        elif part:
            parts.append((1, 0, part.casefold()))
    return (*parts, (-1, 0, text))


def label_keys(values: list[Any], *, any_label: bool) -> list[Key | None]:
    """Page values of one source as keys: roman labels, then numbers, then other labels in natural sort.

    A label such as "C" can be a roman number or a letter. Letters of one case are read as roman only when all
    pure-letter labels of that case in this source are roman numbers.
    """
    texts = {value.strip() for value in values if isinstance(value, str)}
    letters = [text for text in texts if text.isascii() and text.isalpha()]
    roman = {
        case: all(re.fullmatch(_ROMAN, text.lower()) for text in letters if getattr(text, case)())
        for case in ("islower", "isupper")
    }
    return [_label_key(value, roman, any_label=any_label) for value in values]


def _label_key(value: Any, roman: dict[str, bool], *, any_label: bool) -> Key | None:
    number = ordinal(value)
    if number is not None:
        return (NUMBERED, number)
    if not isinstance(value, str) or not (text := value.strip()) or re.fullmatch(_NUMBER, text):
        return None
    case = "islower" if text.islower() else "isupper"
    if roman[case] and getattr(text, case)() and re.fullmatch(_ROMAN, text.lower()):
        return (_ROMAN_LABEL, _roman_value(text.lower()))
    return (_OTHER_LABEL, *natural_key(text)) if any_label else None


def _roman_value(text: str) -> int:
    digits = [_ROMAN_VALUES[letter] for letter in text]
    following = [*digits[1:], 0]
    return sum(-digit if digit < after else digit for digit, after in zip(digits, following, strict=True))
