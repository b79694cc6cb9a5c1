"""A scatter chart with a Pareto front: the score against what it took, say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oprag.compare.report.charts.axes import Axis, Plot, span_of
from oprag.compare.report.charts.svg import MOST_NAMED, OTHERS, chart, look, marker, paint, pixels, sample, tooltip

__all__ = ["Dot", "dot_legend", "scatter_chart"]

_HEIGHT = 220.0
_MOST_TOOLTIPS = 2_000
"""With more the file is large and one dot lies on the other: those on the front alone say what they are."""


class Dot(NamedTuple):
    """A point with its name, and with what it belongs to, which gives it its look."""

    x: float
    y: float
    name: str
    group: str = ""


def scatter_chart(
    dots: Sequence[Dot], *, title: str, description: str, x: Axis, y: Axis, front: Sequence[int] = ()
) -> str:
    """Dots, of which there is at least one, that look as their group does, and the front as a line of steps.

    The front, given by the numbers of dots, is for less of `x` and more of `y`. The first 16 groups have a look each.
    """
    across, upwards = [dot.x for dot in dots], [dot.y for dot in dots]
    plot = Plot.of((x, y), across, upwards, _HEIGHT)
    drawn = list(plot.drawn())
    if len(front) > 1:
        steps = sorted((dots[number].x, dots[number].y) for number in front)
        (left, low), *others = [(pixels(plot.x.place(one)), pixels(plot.y.place(up))) for one, up in steps]
        path = f"M{left} {low}" + "".join(f"H{one}V{up}" for one, up in others)
        drawn.append(f'<path class="oprag-front" d="{path}" fill="none" stroke="{paint("ink")}" stroke-width="1.4"/>')
    told = {*front} if len(dots) > _MOST_TOOLTIPS else {*range(len(dots))}
    border = f'stroke="{paint("page")}" stroke-width="0.7"'
    # The first groups last, and so on top.
    for place, group in reversed([*enumerate(_groups(dots))]):
        shown = look(place)
        drawn.append(f'<g class="oprag-points" {shown.point(border)} opacity="0.85">')
        for number, dot in enumerate(dots):
            if dot.group == group:
                name = (dot.name, dot.group if dot.group != dot.name else "", x.words(dot.x), y.words(dot.y))
                tip = tooltip(*name) if number in told else ""
                drawn.append(f'<path d="{marker(shown.shape, plot.x.place(dot.x), plot.y.place(dot.y))}">{tip}</path>')
        drawn.append("</g>")
    words = f"{description} {span_of(x, across)} {span_of(y, upwards)}"
    return chart(drawn, title=title, description=words, height=plot.height)


def dot_legend(dots: Sequence[Dot]) -> list[tuple[str, str]]:
    """Samples of how groups look, with their names; nothing for one alone."""
    groups = _groups(dots)
    found = [(sample(look(number), line=False), group) for number, group in enumerate(groups[:MOST_NAMED])]
    if len(groups) > MOST_NAMED:
        found.append((sample(OTHERS, line=False), f"{len(groups) - MOST_NAMED:,} more"))
    return found if len(found) > 1 else []


def _groups(dots: Sequence[Dot]) -> list[str]:
    return list(dict.fromkeys(dot.group for dot in dots))
