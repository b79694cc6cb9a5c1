"""Declaring options once, and refusing wrong values in the same words everywhere."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

from oprag.errors import OptionError
from oprag.masking import describe

__all__ = [
    "check_bool",
    "check_choice",
    "check_cosine",
    "check_count",
    "check_names",
    "check_text",
    "descriptions",
    "option",
    "plain",
    "requires",
    "with_plain_numbers",
]

_NONE: Mapping[str, str] = MappingProxyType({})
_PLAIN = (str, int, float, bool, type(None))


def option(default: Any, description: str, function: str = "") -> Any:
    """A dataclass field with its description, and what a function in its place does, in words for every surface."""
    return dataclasses.field(default=default, metadata={"help": description, "function": function})


def descriptions(kind: Any) -> dict[str, str]:
    """What each option of such a dataclass does, functions in its place included."""
    return {
        field.name: field.metadata["help"]
        + (f" Or a function that {does}." if (does := field.metadata["function"]) else "")
        for field in dataclasses.fields(kind)
    }


def plain(value: Any) -> Any:
    """A number as Python's own, such as one of NumPy; anything else as it is."""
    if type(value) in _PLAIN or isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def with_plain_numbers(options: Any) -> None:
    """Set every number among the attributes of an object to Python's own."""
    changed = {name: number for name, value in vars(options).items() if (number := plain(value)) is not value}
    vars(options).update(changed)


def requires(function: Any, parameter: str) -> bool:
    """Whether a function has a parameter of this name without a default; a default may have been bound on purpose."""
    try:
        found = inspect.signature(function).parameters.get(parameter)
    except (TypeError, ValueError):
        return False
    return found is not None and found.default is found.empty


def check_count(name: str, value: Any, *, optional: bool = True, least: int = 1) -> None:
    """Refuse what is no whole number from `least` on.

    Raises:
        OptionError: It is none, nor None where that is allowed.
    """
    if (value is None and optional) or (type(value) is int and value >= least):
        return
    raise OptionError(
        f"{name} must be a whole number from {least}{', or None' if optional else ''}, got {describe(value)}", value
    )


def check_cosine(name: str, value: Any, *, optional: bool = True) -> None:
    """Refuse what is not a number that a cosine can be.

    Raises:
        OptionError: It is not, nor None where that is allowed.
    """
    # A comparison that NaN fails.
    if (value is None and optional) or (
        type(value) is not bool and isinstance(value, Real) and -1 <= float(value) <= 1
    ):
        return
    raise OptionError(
        f"{name} must be a cosine, from -1 to 1{', or None' if optional else ''}, got {describe(value)}", value
    )


def check_choice(name: str, value: Any, choices: Iterable[str], also: str = "") -> None:
    """Refuse what is not one of these words.

    Raises:
        OptionError: It is none of them.
    """
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(choices)}{also}, got {describe(value)}", value)


def check_bool(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    Raises:
        OptionError: It is something else.
    """
    if type(value) is not bool:
        raise OptionError(f"{name} must be True or False, got {describe(value)}", value)


def check_text(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is no string.

    Raises:
        OptionError: It is none, nor None where that is allowed.
    """
    if not isinstance(value, str) and not (optional and value is None):
        raise OptionError(f"{name} must be a string{' or None' if optional else ''}, got {describe(value)}", value)


def check_names(options: Mapping[str, Any], names: Collection[str], near_misses: Mapping[str, str] = _NONE) -> None:
    """Reject unknown option names, and say what was probably meant.

    Args:
        options: The options that were given.
        names: The names of all options.
        near_misses: What to write in place of names that other packages use.

    Raises:
        OptionError: A name is unknown.
    """
    for name in options:
        if name not in names:
            if name in near_misses:
                raise OptionError(f"unknown option {name!r}; {near_misses[name]}", name)
            import difflib

            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(names)}"
            raise OptionError(f"unknown option {name!r}; {hint}", name)
