"""Curves: settings that are alike but for one axis of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from oprag.compare.setting import Setting
from oprag.compare.spec.axes import check_axis
from oprag.compare.stats.summary import Summary
from oprag.compare.table import CellSummary
from oprag.errors import OptionError

__all__ = ["ORDERED_AXES", "CurvePoint", "Row", "axis_rank", "check_ordered", "curves_of"]

Row = tuple[Setting, CellSummary]
"""A setting, and what it scored and took."""

Kept = TypeVar("Kept")

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
"""The axes whose values are numbers, and where None stands: before them where it is the least, as no threshold is."""


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """A point of a curve.

    Attributes:
        value: The value of the axis.
        summary: The scores at this value, over all questions that have one.
        context_tokens: The mean of the tokens of the context; None without one.
        setting: The setting that it is.
    """

    value: Any
    summary: Summary
    context_tokens: float | None
    setting: CellSummary


def check_ordered(axis: str) -> None:
    """Refuse an axis whose values are no numbers.

    Raises:
        OptionError: There is no such axis, scores are averaged over it, or its values have no order.
    """
    check_axis(axis)
    if axis not in ORDERED_AXES:
        raise OptionError(
            f"the values of {axis!r} are no numbers, so there is no curve over them; there are curves over "
            f"{', '.join(ORDERED_AXES)}, and oprag.compare.differences compares any values",
            axis,
        )


def curves_of(
    rows: Sequence[tuple[Setting, Kept]], axis: str
) -> list[tuple[dict[str, Any], list[tuple[Setting, Kept]]]]:
    """The settings that are alike but for the axis, by what they have in common."""
    groups: dict[Hashable, tuple[dict[str, Any], list[tuple[Setting, Kept]]]] = {}
    for row in rows:
        if axis in row[0].values:
            values = {name: value for name, value in row[0].values.items() if name != axis}
            groups.setdefault(_place(values), (values, []))[1].append(row)
    found = list(groups.values())
    curves: list[tuple[dict[str, Any], list[tuple[Setting, Kept]]]] = []
    for values, members in found:
        if not any(_within(values, other) for other, _ in found):
            # Without a threshold min_chunks has no effect, so that such a setting lacks it, and is on the curve of
            # each.
            also = [row for other, others in found if _within(other, values) for row in others]
            curves.append((values, sorted(members + also, key=lambda row: axis_rank(axis, row[0].values[axis]))))
    return curves


def _within(values: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the other has the same values and more."""
    return values.keys() < other.keys() and _place(values) == _place({name: other[name] for name in values})


def _place(values: Mapping[str, Any]) -> Hashable:
    return frozenset((name, type(value), value) for name, value in values.items())


def axis_rank(axis: str, value: Any) -> tuple[int, float]:
    """Where a value of an axis of numbers stands among the others: a key to sort by."""
    return ORDERED_AXES[axis] if value is None else (0, value)
