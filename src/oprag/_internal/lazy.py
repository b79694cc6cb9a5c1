"""Imports on first use: public names, and optional dependencies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

from oprag.errors import MissingExtraError

__all__ = ["import_extra", "loader", "set_public_module"]


def loader(package: str, places: Mapping[str, str], *, renames: bool = True) -> Callable[[str], Any]:
    """Return a module-level `__getattr__` that imports each name of a package from its module on first access."""

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(places[name])
        public = getattr(module, name)
        # Tracebacks and reprs show the package; names exported by a subpackage keep the subpackage as their module.
        if renames and not hasattr(module, "__path__"):
            set_public_module(package, public)
        setattr(sys.modules[package], name, public)
        return public

    return load


def set_public_module(package: str, public: Any) -> None:
    """Make tracebacks and reprs show the package that exports a class or function, not the module that defines it."""
    if isinstance(public, type | FunctionType):
        public.__module__ = package


def import_extra(module: str, feature: str, extra: str, command: str | None = None) -> Any:
    """Import an optional dependency; undo what it does to logging, which belongs to the application."""
    import logging

    before = [(one, one.level, list(one.handlers)) for one in (logging.getLogger(), logging.getLogger(module))]
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(feature, extra, command) from error
    finally:
        for logger, level, handlers in before:
            logger.setLevel(level)
            logger.handlers[:] = handlers
