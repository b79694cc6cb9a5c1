"""An LRU cache limited by the total weight of its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["LruCache"]

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """An LRU cache with a total weight of at most `max_weight`; a single heavier value is kept as well."""

    def __init__(
        self,
        max_weight: int,
        weigh: Callable[[Value], int] = lambda _: 1,
        forget: Callable[[Value], None] = lambda _: None,  # called with each dropped value
    ) -> None:
        self._max_weight = max_weight
        self._weigh = weigh
        self._forget = forget
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key; `make` is called if it is missing."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key][0]
        value = make()
        self._values[key] = value, self._weigh(value)
        self._weight += self._values[key][1]
        while self._weight > self._max_weight and len(self._values) > 1:
            _, (oldest, weight) = self._values.popitem(last=False)
            self._weight -= weight
            self._forget(oldest)
        return value

    def values(self) -> list[Value]:
        """All values, least recently used first."""
        return [value for value, _ in self._values.values()]

    def clear(self) -> None:
        """Drop all values."""
        for value in self.values():
            self._forget(value)
        self._values.clear()
        self._weight = 0
