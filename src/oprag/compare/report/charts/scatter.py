"""A scatter chart with a Pareto front: the score against what it took, say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

from oprag.compare.report.charts.drawing import LINE, MOST_LINES, WIDTH, Drawing, label, tooltip
from oprag.compare.report.charts.numbers import figure
from oprag.compare.report.charts.palette import MOST_NAMED, OTHERS, Look, look, marker, paint
from oprag.compare.report.charts.plot import Plot, draw_plot, span_of
from oprag.compare.report.charts.scale import Axis, number
from oprag.compare.report.charts.svg import pixels
from oprag.compare.report.charts.texts import SMALL, wrapped
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_text

__all__ = ["Dot", "scatter_chart"]

_HEIGHT = 210.0
_MOST_TOOLTIPS = 2_000
"""With more the file is large and one dot lies on the other: those on the front alone say what they are."""
_MOST_NUMBERED = 20
_INDENT = 22.0


class Dot(NamedTuple):
    """A point of a scatter chart.

    Attributes:
        x: Where it stands across.
        y: Where it stands upwards.
        name: What it is, for the tooltip, and for the list where it is on the front.
        group: What it belongs to, which gives it its look; "" for none.
    """

    x: float
    y: float
    name: str
    group: str = ""


def scatter_chart(
    points: Sequence[Dot],
    *,
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    front: Sequence[int] = (),
    note: str = "",
) -> str:
    """Dots that look as their group does, the front as a line of steps, and a list of the dots on it.

    The front is drawn for less of `x` and more of `y`: what can be had for at most so much. Its dots are numbered, and
    the numbers listed below with their names, 20 at most. The first 16 groups have a look each; others are grey.

    Args:
        points: The dots.
        title: What the chart shows.
        description: What is to be seen, for who cannot see it.
        x: The axis across.
        y: The axis upwards.
        front: Which of the dots are on the front, by their place in `points`.
        note: What is said below the chart in small type, such as what the dots are; "" for nothing.

    Returns:
        An `<svg>` element.

    Raises:
        OptionError: A value is no finite number, or not above 0 on a logarithmic axis, the front names a dot that there
            is not, or a text is no string.
    """
    dots = [_checked(place, dot) for place, dot in enumerate(points)]
    on_front = _on_front(front, dots)
    drawing = Drawing(title, description, note)
    if not dots:
        drawing.paragraph("No values.")
        return drawing.svg(["There are no values."])
    across, heights = [dot.x for dot in dots], [dot.y for dot in dots]
    plot = draw_plot(drawing, x, y, across, heights, height=_HEIGHT)
    if len(on_front) > 1:
        drawing.add(
            f'<path class="oprag-front" d="{_steps(on_front, plot)}" fill="none" stroke="{paint("ink")}"'
            f' stroke-width="1.4"/>'
        )
    numbered = {id(dot) for dot in on_front}
    groups: dict[str, list[Dot]] = {}
    for dot in dots:
        groups.setdefault(dot.group, []).append(dot)
    looks = [(look(place), group) for place, group in enumerate(groups)]
    # The first groups last, and so on top.
    for shown, group in reversed(looks):
        there = [dot for dot in groups[group] if len(dots) <= _MOST_TOOLTIPS or id(dot) in numbered]
        silent = [dot for dot in groups[group] if len(dots) > _MOST_TOOLTIPS and id(dot) not in numbered]
        drawing.add(*_group(shown, silent, there, plot))
    drawing.add(*_numbers(on_front, plot))
    if len(groups) > 1 or any(groups):
        drawing.legend(_entries(looks), dashes=False)
    _list(drawing, on_front, plot)
    return drawing.svg([_counted(dots, groups), span_of(x, across), span_of(y, heights), *_in_words(on_front, x, y)])


def _checked(place: int, dot: Dot) -> Dot:
    check_text(f"the name of dot {place}", dot.name)
    check_text(f"the group of dot {place}", dot.group)
    where = f"dot {place} ({dot.name!r})"
    return Dot(number(dot.x, f"x of {where}"), number(dot.y, f"y of {where}"), dot.name, dot.group)


def _on_front(front: Sequence[int], dots: Sequence[Dot]) -> list[Dot]:
    """The dots of the front, from left to right and upwards."""
    for place in front:
        if isinstance(place, bool) or not isinstance(place, Integral) or not 0 <= place < len(dots):
            raise OptionError(
                f"front must name dots by their place, whole numbers from 0 to {len(dots) - 1}, got {describe(place)}",
                place,
            )
    return sorted((dots[int(place)] for place in dict.fromkeys(front)), key=lambda dot: (dot.x, dot.y))


def _steps(front: Sequence[Dot], plot: Plot) -> str:
    """Across to where more can be had, then up to it."""
    first, *others = [(pixels(plot.x.place(dot.x)), pixels(plot.y.place(dot.y))) for dot in front]
    return f"M{first[0]} {first[1]}" + "".join(f"H{x}V{y}" for x, y in others)


def _group(shown: Look, silent: Sequence[Dot], there: Sequence[Dot], plot: Plot) -> Iterator[str]:
    border = f'stroke="{paint("page")}" stroke-width="0.7"'
    yield f'<g class="oprag-points" {shown.point(border)} opacity="0.85">'
    if silent:
        yield f'<path d="{"".join(_shape(shown, dot, plot) for dot in silent)}"/>'
    for dot in there:
        name = [dot.name, dot.group if dot.group != dot.name else ""]
        tip = tooltip(*name, plot.x.words(dot.x), plot.y.words(dot.y))
        yield f'<path d="{_shape(shown, dot, plot)}">{tip}</path>'
    yield "</g>"


def _shape(shown: Look, dot: Dot, plot: Plot) -> str:
    return marker(shown.shape, plot.x.place(dot.x), plot.y.place(dot.y))


def _numbers(front: Sequence[Dot], plot: Plot) -> Iterator[str]:
    yield (
        f'<g class="oprag-numbers" font-weight="600" paint-order="stroke" stroke="{paint("page")}" stroke-width="3"'
        ' stroke-linejoin="round">'
    )
    for place, dot in enumerate(front[:_MOST_NUMBERED], 1):
        # Above and to the left no dot on the front can be, nor the line.
        at = max(plot.x.place(dot.x) - 5, plot.left + 8)
        yield label(at, max(plot.y.place(dot.y) - 6, plot.top + 4), str(place), anchor="end")
    yield "</g>"


def _entries(looks: Sequence[tuple[Look, str]]) -> Iterator[tuple[Look | None, str]]:
    yield from ((shown, group or "no group") for shown, group in looks[:MOST_NAMED])
    if len(looks) > MOST_NAMED:
        yield OTHERS, f"{len(looks) - MOST_NAMED} more groups"


def _list(drawing: Drawing, front: Sequence[Dot], plot: Plot) -> None:
    if not front:
        return
    drawing.paragraph("On the front, numbered in the chart:")
    for place, dot in enumerate(front[:_MOST_NUMBERED], 1):
        text = f"{dot.name}: {plot.x.words(dot.x)}, {plot.y.words(dot.y)}"
        for number_of_line, line in enumerate(wrapped(text, WIDTH - _INDENT, SMALL, MOST_LINES)):
            drawing.top += LINE
            if not number_of_line:
                drawing.add(label(_INDENT - 6, drawing.top - 4, str(place), anchor="end", more='font-weight="600"'))
            drawing.add(label(_INDENT, drawing.top - 4, line))
    if len(front) > _MOST_NUMBERED:
        drawing.paragraph(f"and {len(front) - _MOST_NUMBERED} more, not numbered")
    drawing.top += 4


def _counted(dots: Sequence[Dot], groups: Iterable[str]) -> str:
    count = "1 dot" if len(dots) == 1 else f"{len(dots):,} dots"
    names = [group for group in groups if group]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{count} of {'; '.join(names[:MOST_NAMED])}{more}." if names else f"{count}."


def _in_words(front: Sequence[Dot], x: Axis, y: Axis) -> Iterator[str]:
    if front:
        there = [f"{dot.name} ({figure(dot.x)}, {figure(dot.y)})" for dot in front[:_MOST_NUMBERED]]
        more = f" and {len(front) - len(there)} more" if len(front) > len(there) else ""
        yield f"On the front, as ({x.label}, {y.label}): {'; '.join(there)}{more}."
