"""The paired differences of a report, and what they show in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.wording import counted, value_text
from oprag.compare.report.material import Material
from oprag.compare.stats.difference import FEW_UNITS

__all__ = ["Comparisons", "claim", "comparisons_of", "corrected"]

_MOST_PAIRS = 400


@dataclass(frozen=True)
class Comparisons:
    """The differences in the metric of the report.

    Attributes:
        by_axis: Those between the values of each axis, the order first.
        too_many: How many there are of the axes that have too many.
    """

    by_axis: Mapping[str, Sequence[SettingDifference]]
    too_many: Mapping[str, int]


def comparisons_of(material: Material) -> Comparisons:
    """Compare the values of every axis in which settings differ."""
    by_axis: dict[str, Sequence[SettingDifference]] = {}
    too_many: dict[str, int] = {}
    axes = [name for name in material.differ if name != "data"] if material.metric is not None else []
    for axis in sorted(axes, key=lambda name: name != "order"):
        count = material.results.count_pairs(axis)
        if count > _MOST_PAIRS:
            too_many[axis] = count
        elif count and (found := material.results.differences(axis, [str(material.metric)])):
            by_axis[axis] = found
    return Comparisons(by_axis, too_many)


def corrected(material: Material) -> str:
    """What p-values are corrected for, in words."""
    return (
        f"corrected for all {counted(material.family.comparisons, 'comparison')} of this experiment in "
        f"{material.metric}: along each axis, of the highest setting with all others, and of the highest point of each "
        "curve with its other points (step-down maxT of Westfall and Young). Settings with the same score in every "
        "question are not counted."
    )


def claim(pair: SettingDifference) -> str:
    """What a difference shows, in words."""
    difference = pair.difference
    if difference.mean is None:
        return "No question has a score in both."
    if not difference.differing:
        return "The same score in every question."
    if difference.shown:
        more = "higher" if difference.mean > 0 else "lower"
        text = f"With {value_text(pair.value)} {pair.metric} is {more} than with {value_text(pair.baseline_value)}."
    elif difference.excludes_zero:
        text = "The interval excludes 0, but among so many comparisons that may be chance: nothing can be claimed."
    else:
        text = "No difference can be claimed."
    if difference.low is None:
        text += f" {difference.units:,} to draw from is too few for an interval."
    elif difference.units < FEW_UNITS:
        text += f" With {difference.units:,} to draw from the interval is too narrow."
    return text
