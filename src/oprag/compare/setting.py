"""Cells that are one setting: they differ in nothing but the seed of a random order, or the attempt."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Protocol

from oprag.compare.axes import METHOD_AXES, axes
from oprag.compare.reading import CellAnswers
from oprag.compare.spec.controls import CONTROLS, kind_of
from oprag.errors import OptionError
from oprag.methods.registry import OUR_METHODS
from oprag.options import check_names

__all__ = ["AVERAGED", "HasValues", "Setting", "asks_model", "check_axis", "mean_over", "settings_of", "varying_axes"]

AVERAGED = ("seed", "repeat")
"""The axes that make no setting: the scores of a question are averaged over them first."""


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
        cells: The cells.
    """

    values: Mapping[str, Any]
    cells: Sequence[CellAnswers] = field(repr=False)

    def scores(self, metric: str) -> dict[str, float]:
        """The score of each question by its key, averaged over the cells, where all of them have one."""
        return mean_over(
            [
                {key: answer.scores[metric] for key, answer in cell.answers.items() if metric in answer.scores}
                for cell in self.cells
            ]
        )


def settings_of(cells: Iterable[CellAnswers]) -> list[Setting]:
    """The settings of cells, in their sequence."""
    found: dict[Hashable, tuple[Mapping[str, Any], list[CellAnswers]]] = {}
    for cell in cells:
        values = _effective(cell.values)
        place = tuple((name, type(value), value) for name, value in values.items())
        found.setdefault(place, (values, []))[1].append(cell)
    return [Setting(values, members) for values, members in found.values()]


def check_axis(axis: str) -> None:
    """Refuse an axis whose values cannot be compared.

    Raises:
        OptionError: There is no such axis, or scores are averaged over it.
    """
    try:
        check_names({axis: None}, axes())
    except OptionError as error:
        raise OptionError(str(error).replace("option", "axis", 1), axis) from error
    if axis in AVERAGED:
        raise OptionError(f"scores are averaged over the axis {axis!r}, so its values are not compared", axis)


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


def _effective(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that mean nothing to this method and this order; see `Cell.normal`."""
    method = values["method"]
    kind = kind_of(method)
    if kind.reads is None:
        return {name: value for name, value in values.items() if name in ("data", "method", "model")}
    without = set(AVERAGED)
    used = {method}
    if used & METHOD_AXES["inner_method"]:
        used.add(values["inner_method"])
    if used.issubset((*OUR_METHODS, *CONTROLS)):
        without |= {name for name, methods in METHOD_AXES.items() if not used & methods}
    if values["order"] != "source":
        without.add("source_ranking")
    if values["similarity_threshold"] is None and values["redundancy_threshold"] is None:
        without.add("min_chunks")
    if kind.writes is None:
        without.add("model")
    return {name: value for name, value in values.items() if name not in without}


def mean_over(by_cell: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean score of each question over the cells of a setting, where all of them have one.

    Five random orders of 100 questions are not 500 questions: the scores of one question under several seeds are
    alike, and resampling them as if they were independent makes the interval too narrow, the more so the more seeds
    there are. Averaged first, each question is one unit; more seeds then take away the noise of the orders, and never
    that of the questions.
    """
    if not by_cell:
        return {}
    first, *others = by_cell
    # From the first on, so that equal scores have exactly their own mean, and make no difference of rounding alone.
    return {
        question: score + fsum(other[question] - score for other in others) / len(by_cell)
        for question, score in first.items()
        if all(question in other for other in others)
    }
