"""Text as a results file can hold it."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["storable"]

Value = TypeVar("Value")


def storable(value: Value) -> Value:
    """A text without halves of surrogate pairs, which UTF-8 and so SQLite cannot hold: U+FFFD stands in their place.

    Args:
        value: The text; anything else stays as it is.
    """
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, so that two halves that belong together become their character.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # type: ignore[return-value]
    return value
