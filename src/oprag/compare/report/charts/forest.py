"""A forest plot: an interval a row, all on one scale, each drawn on its own for a row of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oprag.compare.report.charts.axes import Axis, scale_of
from oprag.compare.report.charts.svg import label, marker, paint, pixels

__all__ = ["Mark", "forest_marks"]

_WIDTH, _HEIGHT, _INSET = 240, 24, 16
_CIRCLE, _DIAMOND = 0, 3


class Mark(NamedTuple):
    """A mean and the ends of its interval, if there are any: filled where it is shown, a diamond where it is pooled."""

    mean: float | None
    low: float | None
    high: float | None
    shown: bool = False
    pooled: bool = False


def forest_marks(marks: Sequence[Mark]) -> tuple[list[str], str]:
    """A picture of each mark, and one of the axis below them, which contains 0."""
    values = [end for mark in marks for end in (mark.mean, mark.low, mark.high) if end is not None]
    scale = scale_of(Axis("difference"), [0.0, *values], _INSET, _WIDTH - _INSET, around=True)
    zero = f'<path d="M{pixels(scale.place(0))} 0V{_HEIGHT}" stroke="{paint("quiet")}"/>'
    grid = "".join(f"M{pixels(scale.place(value))} 0V{_HEIGHT}" for value, _ in scale.numbers)
    behind = f'<path d="{grid}" stroke="{paint("grid")}"/>{zero}'
    found: list[str] = []
    for mark in marks:
        colour = paint("1" if mark.shown else "quiet")
        line = ""
        if mark.low is not None and mark.high is not None:
            ends = f"M{pixels(scale.place(mark.low))} 12H{pixels(scale.place(mark.high))}"
            line = f'<path d="{ends}" stroke="{colour}" stroke-width="{3 if mark.pooled else 1.6}"/>'
        if mark.mean is not None:
            fill = colour if mark.shown else paint("page")
            shape = marker(_DIAMOND if mark.pooled else _CIRCLE, scale.place(mark.mean), 12)
            line += f'<path d="{shape}" fill="{fill}" stroke="{colour}" stroke-width="1.6"/>'
        found.append(_drawn([behind, line]))
    numbers = [label(scale.place(value), 15, text, anchor="middle") for value, text in scale.numbers]
    return found, _drawn(numbers)


def _drawn(body: Iterable[str]) -> str:
    # The figures are in the row: there is nothing else to tell.
    return (
        f'<svg class="oprag-row" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" font-size="12"'
        f' aria-hidden="true">{"".join(body)}</svg>'
    )
