"""The sequence of a grid: its axes as they are written, and the values of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprag.compare.axes import axes

__all__ = ["hashable", "place_of", "values_of"]

_LAST = ("seed", "repeat")  # several of these are one setting


def values_of(described: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each axis in their sequence, the axes of the grid first; empty for axes with their default.

    Args:
        described: What a results file says about the experiment.
    """
    listed: dict[str, list[Any]] = {}
    for grid in described.get("grid", ()):
        for name, values in grid.items():
            listed.setdefault(name, []).extend(map(hashable, values))
    for name, part in (("data", "data"), ("embedder", "embedders"), ("model", "models")):
        listed.setdefault(name, list(described.get(part, ())))
    names = sorted([*listed, *(name for name in axes() if name not in listed)], key=lambda name: name in _LAST)
    return {name: listed.get(name, []) for name in names if name in axes()}


def hashable(value: Any) -> Any:
    """A value as settings are told apart by it: JSON makes lists of tuples, such as several keys of metadata."""
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def place_of(values: Mapping[str, Any], listed: Mapping[str, list[Any]]) -> list[int]:
    """Where a cell with these values stands: a key to sort by, the first axis slowest.

    A value that is not listed, since its axis has no effect in the cell, comes last.
    """
    return [known.index(values[name]) if values[name] in known else len(known) for name, known in listed.items()]
