"""The area of a chart that has two axes: grid, numbers and titles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oprag.compare.report.charts.drawing import LINE, WIDTH, Drawing, label
from oprag.compare.report.charts.numbers import figure
from oprag.compare.report.charts.palette import paint
from oprag.compare.report.charts.scale import Axis, Scale, across, upwards
from oprag.compare.report.charts.svg import pixels
from oprag.compare.report.charts.texts import SMALL, text_width, wrapped

__all__ = ["Plot", "draw_numbers_below", "draw_plot", "span_of"]

_RIGHT = WIDTH - 2


@dataclass(frozen=True, kw_only=True)
class Plot:
    """An area with two scales, in pixels of the drawing."""

    left: float
    right: float
    top: float
    bottom: float
    x: Scale
    y: Scale

    def grid(self) -> list[str]:
        """Lines at all numbers, stronger at 0, and the numbers of the axis upwards."""
        upright = "".join(
            f"M{pixels(self.x.place(tick.value))} {pixels(self.top)}V{pixels(self.bottom)}" for tick in self.x.ticks
        )
        level = "".join(
            f"M{pixels(self.left)} {pixels(self.y.place(tick.value))}H{pixels(self.right)}" for tick in self.y.ticks
        )
        return [
            f'<path class="oprag-grid" d="{upright}{level}" fill="none" stroke="{paint("grid")}"/>',
            f'<path d="{self._zeros()}" fill="none" stroke="{paint("quiet")}"/>',
            '<g class="oprag-y">',
            *(
                label(self.left - 6, self.y.place(tick.value) + 4, tick.text, anchor="end", quiet=True)
                for tick in self.y.ticks
            ),
            "</g>",
        ]

    def _zeros(self) -> str:
        """The bottom, and the zeros that lie within."""
        lines = f"M{pixels(self.left)} {pixels(self.bottom)}H{pixels(self.right)}"
        if (upright := self.x.zero()) is not None:
            lines += f"M{pixels(upright)} {pixels(self.top)}V{pixels(self.bottom)}"
        if (level := self.y.zero()) is not None:
            lines += f"M{pixels(self.left)} {pixels(level)}H{pixels(self.right)}"
        return lines


def draw_plot(
    drawing: Drawing, x: Axis, y: Axis, across_values: Iterable[float], up_values: Iterable[float], *, height: float
) -> Plot:
    """Draw the axes, and nothing between them, under what is drawn already.

    Args:
        drawing: Where they are drawn.
        x: The axis across.
        y: The axis upwards.
        across_values: The values on the axis across, one at least.
        up_values: The values on the axis upwards, one at least.
        height: How high the area is.

    Raises:
        OptionError: An axis is logarithmic and a value on it is not above 0.
    """
    drawing.paragraph(y.label)
    top = drawing.top + 8
    up = upwards(y, up_values, top + height, top)
    left = 6 + max((text_width(tick.text, SMALL) for tick in up.ticks), default=0)
    plot = Plot(left=left, right=_RIGHT, top=top, bottom=top + height, x=across(x, across_values, left, _RIGHT), y=up)
    drawing.add(*plot.grid())
    draw_numbers_below(drawing, plot)
    return plot


def draw_numbers_below(drawing: Drawing, plot: Plot) -> None:
    """Draw the numbers of the axis across and its title, and go on below them."""
    drawing.top = plot.bottom + LINE + 2
    drawing.add('<g class="oprag-x">')
    for tick in plot.x.ticks:
        half = text_width(tick.text, SMALL) / 2
        at = min(plot.x.place(tick.value), WIDTH - half)
        drawing.add(label(at, drawing.top - 2, tick.text, anchor="middle", quiet=True))
    drawing.add("</g>")
    for line in wrapped(plot.x.axis.label, WIDTH, SMALL, 2):
        drawing.top += LINE
        half = text_width(line, SMALL) / 2
        at = min(max((plot.left + plot.right) / 2, half), WIDTH - half)
        drawing.add(label(at, drawing.top - 2, line, anchor="middle", quiet=True))
    drawing.top += 4


def span_of(axis: Axis, values: Iterable[float]) -> str:
    """From where to where the values on the axis go, as a sentence."""
    there = list(values)
    scale = ", logarithmic" if axis.logarithmic else ""
    return f"{axis.label}{scale}: {figure(min(there))} to {figure(max(there))}."
