"""Cache keys for the filters of searches."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

__all__ = ["filter_key"]

_BY_VALUE = (str, bytes, int, float, bool, type(None))


class _Identity:
    """Equal only to itself for the same object; it keeps the object alive, so that no other gets its address."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def filter_key(value: Any) -> Hashable:
    """Return a key that equals the key of another filter only if both restrict a search in the same way.

    Plain data and pydantic models are compared by their current values, any other object, such as a function, by
    identity: its repr may be that of another filter.
    """
    kind = type(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind in (list, tuple):
        return kind, tuple(map(filter_key, value))
    # Not imported: pydantic is part of the extras.
    fields = vars(value) if hasattr(kind, "model_fields") else value
    if type(fields) is dict:
        return kind, tuple((filter_key(name), filter_key(inner)) for name, inner in fields.items())
    return _Identity(value)
