"""The paired differences of a report, and what they show in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oprag.compare.html.material import Material
from oprag.compare.html.words import value_text
from oprag.compare.pairs import CellDifference, count_pairs, differences
from oprag.compare.statistics.difference import FEW_UNITS

__all__ = ["LEAST_P", "Comparisons", "claim", "claimed", "comparisons_of"]

LEAST_P = 0.05
_MOST_PAIRS = 400
_MANY = 100_000  # questions that nobody will ask


@dataclass(frozen=True)
class Comparisons:
    """The differences in the metric of the report.

    Attributes:
        by_axis: Those between the values of each axis, the order first.
        too_many: How many there are of the axes that have too many.
    """

    by_axis: Mapping[str, Sequence[CellDifference]]
    too_many: Mapping[str, int]


def comparisons_of(material: Material) -> Comparisons:
    """Compare the values of every axis in which settings differ."""
    by_axis: dict[str, Sequence[CellDifference]] = {}
    too_many: dict[str, int] = {}
    axes = [name for name in material.differ if name != "data"] if material.metric is not None else []
    for axis in sorted(axes, key=lambda name: name != "order"):
        count = count_pairs(material.results, axis=axis)
        if count > _MOST_PAIRS:
            too_many[axis] = count
        elif count and (found := differences(material.results, axis=axis, metrics=[str(material.metric)])):
            by_axis[axis] = found
    return Comparisons(by_axis, too_many)


def claimed(pair: CellDifference) -> bool:
    """Whether a difference can be claimed: its interval excludes 0, and so does its p-value among all of its kind."""
    return pair.difference.excludes_zero and pair.adjusted_p is not None and pair.adjusted_p < LEAST_P


def claim(pair: CellDifference) -> str:
    """What a difference shows, in words."""
    difference = pair.difference
    if difference.mean is None:
        return "No question has a score in both."
    if not difference.differing:
        return "The same score in every question."
    if claimed(pair):
        more = "higher" if difference.mean > 0 else "lower"
        text = f"With {value_text(pair.value)} {pair.metric} is {more} than with {value_text(pair.baseline)}."
    elif difference.excludes_zero:
        text = "The interval excludes 0, but among so many comparisons that may be chance: nothing can be claimed."
    else:
        text = "No difference can be claimed."
        if difference.needed:
            about = f"about {_rounded(difference.needed):,}" if difference.needed < _MANY else f"over {_MANY:,}"
            text += f" Alone, it would take {about} more questions."
    if difference.low is None:
        text += f" {difference.units:,} to draw from is too few for an interval."
    elif difference.units < FEW_UNITS:
        text += f" With {difference.units:,} to draw from the interval is too narrow."
    return text


def _rounded(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - 2)
    return round(count / step) * step
