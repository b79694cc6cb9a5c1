"""Adapters for classes of other packages, found by name, so that none of those packages is imported."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Generic, TypeVar

from oprag.errors import OptionError

__all__ = ["AdapterTable"]

Adapter = TypeVar("Adapter")


class AdapterTable(Generic[Adapter]):
    """Says which adapter is that of an object.

    Args:
        kind: The class of the adapters.
        package: The package whose modules have an `ADAPTER` each.
        modules: The module for each class, by the class's own module and name.
    """

    def __init__(self, kind: type[Adapter], package: str, modules: dict[str, str]) -> None:
        self._kind = kind
        self._package = package
        self._modules = modules
        self._adapters: dict[str, Adapter] = {}

    def register(self, given: type, adapter: Adapter) -> None:
        """Say which adapter is that of a class and its subclasses.

        Raises:
            OptionError: It is no adapter.
        """
        if not isinstance(adapter, self._kind):
            raise OptionError(f"adapter must be a {self._kind.__name__}, got {type(adapter).__name__}", adapter)
        self._adapters[_path(given)] = adapter

    def of(self, given: Any) -> Adapter | None:
        """The adapter for an object, None where there is none."""
        for path in map(_path, type(given).__mro__):
            if path not in self._adapters and path in self._modules:
                self._adapters[path] = import_module(f"{self._package}.{self._modules[path]}").ADAPTER
            if path in self._adapters:
                return self._adapters[path]
        return None


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
