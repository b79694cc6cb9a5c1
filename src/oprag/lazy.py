"""Public names that are loaded when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

__all__ = ["loader", "shown_in"]


def loader(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that loads these names from these modules."""

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(places[name])
        public = getattr(module, name)
        # What a package of its own offers is shown there.
        if not hasattr(module, "__path__"):
            shown_in(package, public)
        setattr(sys.modules[package], name, public)
        return public

    return load


def shown_in(package: str, public: Any) -> None:
    """Let tracebacks and reprs name one place, whatever module a class or function lives in."""
    if isinstance(public, type | FunctionType):
        public.__module__ = package
