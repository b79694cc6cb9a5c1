"""Forest plots: one interval per table row, each drawn as a separate SVG, all on the same scale."""

from __future__ import annotations

from collections.abc import Sequence

from oprag.compare.report.charts.axes import scale_of
from oprag.compare.report.charts.svg import CIRCLE, DIAMOND, label, paint, pixels
from oprag.compare.stats.difference import Difference

__all__ = ["forest_marks"]

_WIDTH, _HEIGHT, _INSET = 240, 24, 16


def forest_marks(rows: Sequence[tuple[Difference, bool]]) -> tuple[list[str], str]:
    """An SVG for each difference with its interval, and one for the axis below them, which contains 0.

    The marker is filled if a difference is significant; that of a pooled difference is a diamond.
    """
    values = [end for one, _ in rows for end in (one.mean, one.low, one.high) if end is not None]
    scale = scale_of([0.0, *values], _INSET, _WIDTH - _INSET)
    grid = "".join(f"M{pixels(scale.place(value))} 0V{_HEIGHT}" for value, _ in scale.numbers)
    grid_lines = f'<path d="{grid}" stroke="{paint("grid")}"/>'
    grid_lines += f'<path d="M{pixels(scale.place(0))} 0V{_HEIGHT}" stroke="{paint("quiet")}"/>'
    found: list[str] = []
    for one, pooled in rows:
        colour = paint("1" if one.significant else "quiet")
        line = ""
        if one.low is not None and one.high is not None:
            ends = f"M{pixels(scale.place(one.low))} 12H{pixels(scale.place(one.high))}"
            line = f'<path d="{ends}" stroke="{colour}" stroke-width="{3 if pooled else 1.6}"/>'
        if one.mean is not None:
            fill = colour if one.significant else paint("page")
            shape = f"M{pixels(scale.place(one.mean))} 12{DIAMOND if pooled else CIRCLE}"
            line += f'<path d="{shape}" fill="{fill}" stroke="{colour}" stroke-width="1.6"/>'
        found.append(_drawn(grid_lines + line))
    numbers = (label(scale.place(value), 15, text, anchor="middle") for value, text in scale.numbers)
    return found, _drawn("".join(numbers))


def _drawn(body: str) -> str:
    # Hidden from screen readers, since the table row contains the same numbers.
    return (
        f'<svg class="oprag-row" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" font-size="12"'
        f' aria-hidden="true">{body}</svg>'
    )
