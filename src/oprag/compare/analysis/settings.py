"""Settings: cells that differ in the seed of a random order or the repeat alone, and the axes that set them apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from oprag.compare.spec.axes import AVERAGED, axes, has_effect

__all__ = [
    "HasValues",
    "Setting",
    "asks_model",
    "effective_values",
    "grid_values",
    "group_cells",
    "hashable",
    "place_in_grid",
    "varying_axes",
]


class HasValues(Protocol):
    """Something with values on axes."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The values of the axes that have an effect."""
        ...


@dataclass(frozen=True)
class Setting:
    """Cells that are one setting.

    Attributes:
        values: The values of the axes that have an effect, but for the seed and the repeat.
        cells: The numbers of the cells.
    """

    values: Mapping[str, Any]
    cells: tuple[int, ...] = field(repr=False)


def group_cells(values: Sequence[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """The settings of cells, given their values on every axis, in the sequence of their first cells."""
    found: dict[Hashable, tuple[Mapping[str, Any], list[int]]] = {}
    for number, everything in enumerate(values):
        effective = effective_values(everything)
        place = tuple((name, type(value), value) for name, value in effective.items())
        found.setdefault(place, (effective, []))[1].append(number)
    return tuple(Setting(effective, tuple(cells)) for effective, cells in found.values())


def effective_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that have an effect, but for the seed and the repeat."""
    return {name: value for name, value in values.items() if name not in AVERAGED and has_effect(name, values)}


def asks_model(setting: HasValues) -> bool:
    """Whether a model is asked for its answers; if not, there is nothing that they cost of it, which is not 0."""
    return "model" in setting.values


def varying_axes(settings: Sequence[HasValues]) -> tuple[list[str], dict[str, Any]]:
    """The axes in which settings differ, and the values of the others.

    An axis that has no effect in some of them differs where the others have several values.
    """
    differ: list[str] = []
    same: dict[str, Any] = {}
    names = dict.fromkeys(name for one in sorted(settings, key=lambda one: -len(one.values)) for name in one.values)
    for name in names:
        values = [setting.values[name] for setting in settings if name in setting.values]
        if any(value != values[0] or type(value) is not type(values[0]) for value in values):
            differ.append(name)
        elif values:
            same[name] = values[0]
    return differ, same


def grid_values(described: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each axis as the grid has them, its own axes first; empty for axes with their default.

    Args:
        described: What a results file says about the experiment.
    """
    listed: dict[str, list[Any]] = {}
    for grid in described.get("grid", ()):
        for name, values in grid.items():
            listed.setdefault(name, []).extend(map(hashable, values))
    for name, part in (("data", "data"), ("embedder", "embedders"), ("model", "models")):
        listed.setdefault(name, list(described.get(part, ())))
    # Several seeds and repeats are one setting, and come last.
    names = sorted([*listed, *(name for name in axes() if name not in listed)], key=lambda name: name in AVERAGED)
    return {name: listed.get(name, []) for name in names if name in axes()}


def hashable(value: Any) -> Any:
    """A value as settings are told apart by it: JSON makes lists of tuples, such as several keys of metadata."""
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def place_in_grid(values: Mapping[str, Any], grid: Mapping[str, list[Any]]) -> list[int]:
    """Where a cell with these values stands: a key to sort by, the first axis slowest.

    A value that is not listed, since its axis has no effect in the cell, comes last.
    """
    return [known.index(values[name]) if values[name] in known else len(known) for name, known in grid.items()]
