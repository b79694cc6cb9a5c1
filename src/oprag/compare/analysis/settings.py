"""Settings: groups of cells that differ only in the seed of a random order or the repeat, and the axes they vary in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from oprag.compare.controls import kind_of
from oprag.compare.spec.axes import AVERAGED, axes, check_axis, has_effect
from oprag.errors import OptionError

__all__ = [
    "ORDERED_AXES",
    "HasValues",
    "Setting",
    "asks_model",
    "axis_rank",
    "by_data",
    "check_ordered",
    "content",
    "curves_along",
    "effective_values",
    "grid_values",
    "group_cells",
    "hashable",
    "place_in_grid",
    "varying_axes",
]

_NONE_FIRST, _NONE_LAST = (-1, 0), (1, 0)
ORDERED_AXES = {
    "chunk_size": _NONE_LAST,
    "chunk_overlap": _NONE_FIRST,
    "k": _NONE_LAST,
    "max_candidates": _NONE_FIRST,
    "token_budget": _NONE_LAST,
    "similarity_threshold": _NONE_FIRST,
    "redundancy_threshold": _NONE_LAST,
    "min_chunks": _NONE_FIRST,
    "neighbors": _NONE_FIRST,
    "passage_tokens": _NONE_LAST,
    "collapse_tokens": _NONE_LAST,
    "variants": _NONE_FIRST,
    "answer_threshold": _NONE_FIRST,
    "source_token_budget": _NONE_LAST,
}
"""Numeric axes, and where None sorts: first if it is the smallest value (no minimum threshold), else last."""


class HasValues(Protocol):
    """Anything with values on axes."""

    @property
    def values(self) -> Mapping[str, Any]:
        """Values of the axes that have an effect."""
        ...


Described = TypeVar("Described", bound=HasValues)


@dataclass(frozen=True)
class Setting:
    """A group of cells with the same effective values.

    Attributes:
        number: Index among the settings.
        values: Values of the axes that have an effect, except the seed and the repeat.
        cells: Indices of the cells.
    """

    number: int
    values: Mapping[str, Any]
    cells: tuple[int, ...] = field(repr=False)


def group_cells(values: Sequence[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """Group cells into settings, in the order of their first cells; `values` has each cell's value on every axis."""
    found: dict[frozenset[Any], tuple[Mapping[str, Any], list[int]]] = {}
    for cell, everything in enumerate(values):
        effective = effective_values(everything)
        found.setdefault(content(effective), (effective, []))[1].append(cell)
    return tuple(Setting(number, effective, tuple(cells)) for number, (effective, cells) in enumerate(found.values()))


def effective_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that have an effect, without the seed and the repeat."""
    return {name: value for name, value in values.items() if name not in AVERAGED and has_effect(name, values)}


def asks_model(setting: HasValues) -> bool:
    """Whether its answers come from a model; otherwise model costs are missing rather than 0."""
    return "model" in setting.values or kind_of(str(setting.values["method"])).own


def varying_axes(settings: Sequence[HasValues]) -> tuple[list[str], dict[str, Any]]:
    """Axes in which settings differ, and the values of the axes that they share.

    An axis without effect in some settings varies if the other settings have several values of it.
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


def check_ordered(axis: str) -> None:
    """Reject an axis whose values are not numbers.

    Raises:
        OptionError: The axis does not exist, is averaged over (seed, repeat), or has no numeric values.
    """
    check_axis(axis)
    if axis not in ORDERED_AXES:
        raise OptionError(
            f"cannot draw a curve over {axis!r}: its values are not numbers; use Results.differences, which accepts "
            f"any values, or one of the axes {', '.join(ORDERED_AXES)}",
            axis,
        )


def axis_rank(axis: str, value: Any) -> tuple[int, float]:
    """Sort key for the values of a numeric axis."""
    return ORDERED_AXES[axis] if value is None else (0, value)


def grid_values(described: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Values of each axis in grid order, grid axes first; empty for axes left at their default."""
    listed: dict[str, list[Any]] = {}
    for grid in described.get("grid", ()):
        for name, values in grid.items():
            listed.setdefault(name, []).extend(map(hashable, values))
    for name, part in (("data", "data"), ("embedder", "embedders"), ("model", "models")):
        listed.setdefault(name, list(described.get(part, ())))
    # The seed and the repeat do not distinguish settings, so they come last.
    names = sorted([*listed, *(name for name in axes() if name not in listed)], key=lambda name: name in AVERAGED)
    return {name: listed.get(name, []) for name in names if name in axes()}


def hashable(value: Any) -> Any:
    """A hashable form of a value: tuples, such as several metadata keys, come back from JSON as lists."""
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def by_data(settings: Sequence[Described]) -> dict[str, list[Described]]:
    """Settings by data set, since scores of different questions are not comparable."""
    found: dict[str, list[Described]] = {}
    for setting in settings:
        found.setdefault(str(setting.values["data"]), []).append(setting)
    return found


def place_in_grid(values: Mapping[str, Any], grid: Mapping[str, list[Any]]) -> list[int]:
    """Sort key of a cell in grid order; the first axis varies slowest.

    A value that the grid does not list, since its axis has no effect in the cell, sorts last.
    """
    return [known.index(values[name]) if values[name] in known else len(known) for name, known in grid.items()]


def curves_along(settings: Sequence[Described], axis: str) -> list[tuple[dict[str, Any], list[Described]]]:
    """Groups of settings that differ only in a numeric axis, sorted along it, each with the values they share."""
    groups: dict[frozenset[Any], tuple[dict[str, Any], list[Described]]] = {}
    for setting in settings:
        if axis in setting.values:
            values = {name: value for name, value in setting.values.items() if name != axis}
            groups.setdefault(content(values), (values, []))[1].append(setting)
    curves: list[tuple[dict[str, Any], list[Described]]] = []
    for shared, (values, members) in groups.items():
        if not any(shared < other for other in groups):
            # Without a threshold, min_chunks has no effect and is not among the values of such a setting, which
            # therefore is on the curve of every min_chunks.
            without = [one for other, (_, others) in groups.items() if other < shared for one in others]
            curves.append((values, sorted(members + without, key=lambda one: axis_rank(axis, one.values[axis]))))
    return curves


def content(values: Mapping[str, Any], names: Iterable[str] | None = None) -> frozenset[tuple[str, type, Any]]:
    """Values on axes as a set for comparison; values of different types, such as 1 and True, are different."""
    return frozenset((name, type(values[name]), values[name]) for name in (values if names is None else names))
