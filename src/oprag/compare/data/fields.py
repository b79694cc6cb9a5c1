"""The values of a record, checked where they are taken."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from reprlib import Repr
from string import ascii_uppercase
from typing import Any

from oprag.compare.data.problems import RecordError
from oprag.masking import listed

__all__ = [
    "about",
    "as_count",
    "as_text",
    "as_texts",
    "given",
    "identifier",
    "letter_place",
    "optional_text",
    "optional_texts",
    "shown",
    "text",
    "text_place",
]

Fields = Mapping[str, Any]

_HALF_PAIR = re.compile("[\ud800-\udfff]")

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlist = _SHORT.maxdict = 4


def shown(value: Any) -> str:
    """A value as a message shows it, cut where it is long."""
    return _SHORT.repr(value)


def given(fields: Fields, field: str) -> Any:
    """The value of a field that there must be.

    Raises:
        RecordError: There is no such field.
    """
    if field not in fields:
        raise RecordError(f"the field {field!r} is missing; the fields are {listed(fields)}")
    return fields[field]


def as_text(value: Any, what: str, *, blank: bool = False) -> str:
    """A value that must be a string with something in it.

    Args:
        value: The value.
        what: What it is called, for the message.
        blank: Let it be empty.

    Raises:
        RecordError: It is no string, is empty or white space, or has a half of a surrogate pair, which is no text.
    """
    if not isinstance(value, str):
        raise RecordError(f"{what} must be a string, got {shown(value)}")
    if not blank and not value.strip():
        raise RecordError(f"{what} must not be empty, got {shown(value)}")
    half = _HALF_PAIR.search(value)
    if half:
        raise RecordError(
            f"{what} has a half of a surrogate pair (\\u{ord(half.group()):04x}) at character {half.start():,}, which "
            "is no character; write the pair, or the character itself"
        )
    return value


def text(fields: Fields, field: str) -> str:
    """A field that must be a string with something in it.

    Raises:
        RecordError: It is missing or something else.
    """
    return as_text(given(fields, field), field)


def optional_text(fields: Fields, field: str) -> str | None:
    """A field that may be missing or null, and is a string otherwise.

    Raises:
        RecordError: It is something else.
    """
    value = fields.get(field)
    return None if value is None else as_text(value, field, blank=True)


def as_texts(value: Any, what: str, *, least: int = 0) -> tuple[str, ...]:
    """A value that must be a list of strings with something in each.

    Args:
        value: The value.
        what: What it is called, for the message.
        least: How many there must be.

    Raises:
        RecordError: It is no list, is shorter, or has something else in it.
    """
    if not isinstance(value, list):
        raise RecordError(f"{what} must be a list of strings, got {shown(value)}")
    if len(value) < least:
        raise RecordError(f"{what} must have at least {least} in it, got {shown(value)}")
    return tuple(as_text(one, f"{what}[{place}]") for place, one in enumerate(value))


def optional_texts(fields: Fields, field: str) -> tuple[str, ...]:
    """A field that may be missing or null, and is a list of strings otherwise, with something in each.

    Raises:
        RecordError: It is something else.
    """
    value = fields.get(field)
    return () if value is None else as_texts(value, field)


def identifier(fields: Fields, field: str, default: str) -> str:
    """A field that names something: a string, or a whole number as one; the default where it is missing or null.

    Raises:
        RecordError: It is something else.
    """
    value = fields.get(field)
    if value is None:
        return default
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise RecordError(f"{field} must be a string or a whole number, got {shown(value)}")
    return as_text(value, field)


def as_count(value: Any, what: str) -> int:
    """A value that must be a whole number from 0, or a string of its digits.

    Raises:
        RecordError: It is something else.
    """
    if type(value) is int and value >= 0:
        return value
    # ASCII, since other digits and very long numbers are something else.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    raise RecordError(f"{what} must be a whole number from 0, got {shown(value)}")


def letter_place(letter: Any, what: str, choices: Sequence[str]) -> int:
    """The place of a choice by its letter.

    Raises:
        RecordError: It is no letter of these choices.
    """
    letters = ascii_uppercase[: len(choices)]
    if not isinstance(letter, str) or len(letter) != 1 or letter not in letters:
        raise RecordError(f"{what} must be the letter of one of the {len(choices)} choices, got {shown(letter)}")
    return letters.index(letter)


def text_place(right: str, what: str, choices: Sequence[str]) -> int:
    """The place of a choice by its text; of equal ones the first.

    Raises:
        RecordError: It is none of them.
    """
    if right not in choices:
        raise RecordError(f"{what} must be one of the choices {shown(list(choices))}, got {shown(right)}")
    return choices.index(right)


def about(fields: Fields, *, but: Sequence[str] = ()) -> dict[str, str | int | float | bool]:
    """What a record says besides, to look at parts of a set: all its other fields.

    Null is left out, and what is a list or has fields of its own becomes its JSON.

    Args:
        fields: The record.
        but: The fields that are something else.
    """
    return {
        field: value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        for field, value in fields.items()
        if field not in but and value is not None
    }
