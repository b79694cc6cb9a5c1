"""Settings: cells that differ in the seed of a random order or the repeat alone, and the axes that set them apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

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
    "nearest",
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
"""The axes whose values are numbers, and where None is: before them where it is the least, as no threshold is."""


class HasValues(Protocol):
    """Something with values on axes."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The values of the axes that have an effect."""
        ...


Described = TypeVar("Described", bound=HasValues)


@dataclass(frozen=True)
class Setting:
    """Cells that are one setting.

    Attributes:
        number: Its number.
        values: The values of the axes that have an effect, but for the seed and the repeat.
        cells: The numbers of the cells.
    """

    number: int
    values: Mapping[str, Any]
    cells: tuple[int, ...] = field(repr=False)


def group_cells(values: Sequence[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """The settings of cells, given their values on every axis, in the sequence of their first cells."""
    found: dict[frozenset[Any], tuple[Mapping[str, Any], list[int]]] = {}
    for cell, everything in enumerate(values):
        effective = effective_values(everything)
        found.setdefault(content(effective), (effective, []))[1].append(cell)
    return tuple(Setting(number, effective, tuple(cells)) for number, (effective, cells) in enumerate(found.values()))


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


def check_ordered(axis: str) -> None:
    """Refuse an axis whose values are not numbers.

    Raises:
        OptionError: The axis does not exist, scores are averaged over it, or its values have no order.
    """
    check_axis(axis)
    if axis not in ORDERED_AXES:
        raise OptionError(
            f"the values of {axis!r} are not numbers, so there is no curve over them; there are curves over "
            f"{', '.join(ORDERED_AXES)}, and Results.differences compares any values",
            axis,
        )


def axis_rank(axis: str, value: Any) -> tuple[int, float]:
    """A key to sort the values of an axis of numbers by."""
    return ORDERED_AXES[axis] if value is None else (0, value)


def grid_values(described: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each axis as the grid has them, its own axes first; empty for axes with their default."""
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


def by_data(settings: Sequence[Described]) -> dict[str, list[Described]]:
    """The settings of each data set; scores of different questions are not compared."""
    found: dict[str, list[Described]] = {}
    for setting in settings:
        found.setdefault(str(setting.values["data"]), []).append(setting)
    return found


def place_in_grid(values: Mapping[str, Any], grid: Mapping[str, list[Any]]) -> list[int]:
    """Where a cell with these values stands: a key to sort by, the first axis slowest.

    A value that is not listed, since its axis has no effect in the cell, comes last.
    """
    return [known.index(values[name]) if values[name] in known else len(known) for name, known in grid.items()]


def curves_along(settings: Sequence[Described], axis: str) -> list[tuple[dict[str, Any], list[Described]]]:
    """The settings that are alike but for an axis of numbers, along it, by what they have in common."""
    groups: dict[frozenset[Any], tuple[dict[str, Any], list[Described]]] = {}
    for setting in settings:
        if axis in setting.values:
            values = {name: value for name, value in setting.values.items() if name != axis}
            groups.setdefault(content(values), (values, []))[1].append(setting)
    curves: list[tuple[dict[str, Any], list[Described]]] = []
    for shared, (values, members) in groups.items():
        if not any(shared < other for other in groups):
            # Without a threshold min_chunks has no effect, so such a setting lacks it, and is on the curve of each.
            also = [one for other, (_, others) in groups.items() if other < shared for one in others]
            curves.append((values, sorted(members + also, key=lambda one: axis_rank(axis, one.values[axis]))))
    return curves


def nearest(
    settings: Sequence[Described], others: Sequence[Described], same: Collection[str]
) -> Iterator[tuple[Described, Described]]:
    """Each setting with the other that is most like it and the same on some axes, where there is one."""
    for setting in settings:
        there = content(setting.values)
        if alike := [one for one in others if content(one.values, same) <= there]:
            yield setting, max(alike, key=lambda one: len(content(one.values) & there))


def content(values: Mapping[str, Any], names: Iterable[str] | None = None) -> frozenset[tuple[str, type, Any]]:
    """Values on axes, to compare them: those of different types, such as 1 and True, are different."""
    return frozenset((name, type(values[name]), values[name]) for name in (values if names is None else names))
