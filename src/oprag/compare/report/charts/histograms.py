"""A histogram for each of several series, one below the other: score differences of methods, say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral

from oprag.compare.report.charts.drawing import LINE, MOST_LINES, WIDTH, Drawing, label, tooltip
from oprag.compare.report.charts.numbers import figure
from oprag.compare.report.charts.palette import paint
from oprag.compare.report.charts.plot import Plot, draw_numbers_below
from oprag.compare.report.charts.scale import Axis, across, number, upwards
from oprag.compare.report.charts.svg import pixels
from oprag.compare.report.charts.texts import SMALL, text_width, wrapped
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_text

__all__ = ["histogram"]

_ALONE, _AMONG = 170.0, 80.0
_MOST_IN_WORDS = 16


def histogram(
    edges: Sequence[float],
    counts: Mapping[str, Sequence[int]],
    *,
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    note: str = "",
) -> str:
    """A panel of bars for each series, all on the same axes, so that they can be compared from the top down.

    Bars are as high as their count, whatever their width: edges at equal distances show it best.

    Args:
        edges: Where the bins begin, in rising sequence, and where the last one ends.
        counts: How many are in each bin, by the name of the series.
        title: What the chart shows.
        description: What is to be seen, for who cannot see it.
        x: The axis across.
        y: The axis of the counts, which begins at 0.
        note: What is said below the chart in small type, such as what the counts are of; "" for nothing.

    Returns:
        An `<svg>` element.

    Raises:
        OptionError: The edges do not rise or are not finite, a count is no whole number from 0, there are not as many
            counts as bins, the axis of the counts is logarithmic, or a text is no string.
    """
    borders = _rising(edges) if counts else []
    series = {name: _checked(name, those, len(borders) - 1) for name, those in counts.items()}
    if y.logarithmic:
        raise OptionError("the axis of the counts must be linear, since bars begin at 0", y)
    drawing = Drawing(title, description, note)
    if not series:
        drawing.paragraph("No values.")
        return drawing.svg(["There are no values."])
    drawing.paragraph(y.label)
    most = max(max(those) for those in series.values())
    height = _ALONE if len(series) == 1 else _AMONG
    plot = None
    for name, those in series.items():
        for line in wrapped(name, WIDTH, SMALL, MOST_LINES) if len(series) > 1 else ():
            drawing.top += LINE
            drawing.add(label(0, drawing.top - 2, line, more='font-weight="600"'))
        top = drawing.top + 8
        up = upwards(y, [0, most or 1], top + height, top, whole=True)
        left = 6 + max(text_width(tick.text, SMALL) for tick in up.ticks)
        right = WIDTH - 2
        plot = Plot(left=left, right=right, top=top, bottom=top + height, x=across(x, borders, left, right), y=up)
        drawing.add(*plot.grid(), f'<g class="oprag-bars" fill="{paint("1")}">')
        drawing.add(*_bars(name, borders, those, plot, y), "</g>")
        drawing.top = plot.bottom + 6
    if plot is not None:
        draw_numbers_below(drawing, plot)
    return drawing.svg(list(_facts(series, borders, x)))


def _rising(edges: Sequence[float]) -> list[float]:
    borders = [number(edge, f"edge {place}") for place, edge in enumerate(edges)]
    if len(borders) < 2 or any(one >= other for one, other in pairwise(borders)):
        raise OptionError(f"edges must be two numbers or more in rising sequence, got {describe(list(edges))}", edges)
    return borders


def _checked(name: str, counts: Sequence[int], bins: int) -> list[int]:
    check_text("the name of a series", name)
    if len(counts) != bins:
        raise OptionError(f"counts of {name!r} must be one for each of the {bins} bins, got {len(counts)}", counts)
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise OptionError(f"counts of {name!r} must be whole numbers from 0, got {describe(count)}", count)
    return [int(count) for count in counts]


def _bars(name: str, borders: Sequence[float], counts: Sequence[int], plot: Plot, y: Axis) -> Iterator[str]:
    for (start, end), count in zip(pairwise(borders), counts, strict=True):
        if not count:
            continue
        left, right, top = plot.x.place(start), plot.x.place(end), plot.y.place(count)
        # A gap between bars, as long as they are wide enough for it.
        gap = 1.0 if right - left > 4 else 0.0
        tip = tooltip(name, f"{figure(start)} to {figure(end)}", f"{count:,} {y.unit or y.title}")
        yield (
            f'<rect x="{pixels(left)}" y="{pixels(top)}" width="{pixels(right - left - gap)}"'
            f' height="{pixels(plot.bottom - top)}">{tip}</rect>'
        )


def _facts(series: Mapping[str, Sequence[int]], borders: Sequence[float], x: Axis) -> Iterator[str]:
    yield f"{len(borders) - 1} bins of {x.label} from {figure(borders[0])} to {figure(borders[-1])}."
    for name, counts in list(series.items())[:_MOST_IN_WORDS]:
        where = max(range(len(counts)), key=counts.__getitem__)
        yield (
            f"{name}: {sum(counts):,} in all, the highest bar ({counts[where]:,}) from {figure(borders[where])}"
            f" to {figure(borders[where + 1])}."
        )
