"""Score against tokens and against time, with the settings that nothing cheaper is as good as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from oprag.compare.charts import Axis, Dot, scatter_chart
from oprag.compare.html.material import Material, tokens_of
from oprag.compare.html.parts import Figure, Part, Section, Table, Text
from oprag.compare.html.words import amount, interval, unit_of, value_text

__all__ = ["pareto", "section"]

_MOST = 60  # rows of the table of a front


def section(material: Material) -> Section | None:
    """Score against what it costs."""
    parts: list[Part] = []
    asked = any(row.per_answer.get("calls") for row in material.table)
    for what, title, unit, costs in (
        (
            "tokens",
            "tokens of an answer, in and out" if asked else "tokens of the context",
            "tokens",
            _tokens(material),
        ),
        ("time", "time of an answer, retrieval and generation", "s", _seconds(material)),
    ):
        parts += _parts(material, what, Axis(title, unit), costs)
    if not parts:
        return None
    parts.insert(
        0,
        Text(
            "Settings on the Pareto front have a higher mean score than every one that costs less or as much. Means "
            "alone decide it: a step of the front may be chance."
        ),
    )
    return Section("cost", "Score against tokens and time", parts)


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """The points that are better than every one that costs as much or less, the cheapest first.

    Args:
        points: What each costs, and its score.
    """
    front: list[int] = []
    for number in sorted(range(len(points)), key=lambda one: (points[one][0], -points[one][1], one)):
        if not front or points[number][1] > points[front[-1]][1]:
            front.append(number)
    return front


def _parts(material: Material, what: str, axis: Axis, costs: Mapping[int, float]) -> list[Part]:
    metric = material.metric
    places = [number for number in costs if metric is not None and metric in material.table[number].scores]
    if metric is None or len(places) < 2:
        return []
    group = next((axis for axis in ("method", "order", *material.differ) if axis in material.differ), "method")
    dots = []
    for number in places:
        row = material.table[number]
        value = row.values.get(group)
        dots.append(
            Dot(costs[number], row.scores[metric].mean or 0.0, material.name(row.values), group=value_text(value))
        )
    front = pareto([(dot.x, dot.y) for dot in dots])
    low, high = min(dot.x for dot in dots), max(dot.x for dot in dots)
    best = [f"{dots[number].name} ({amount(dots[number].x)}, {dots[number].y:.3f})" for number in front[:8]]
    title = f"{metric} against {what}"
    chart = scatter_chart(
        dots,
        title=title,
        description=f"{len(dots):,} settings, grouped by {group}. On the Pareto front: {'; '.join(best)}.",
        x=replace(axis, logarithmic=low > 0 and high >= 8 * low),
        y=Axis(metric, unit_of(metric)),
        front=front,
    )
    rows = [
        (dots[number].name, amount(dots[number].x), interval(material.table[places[number]].scores[metric]))
        for number in front[:_MOST]
    ]
    return [
        Figure(chart),
        Table(
            f"The Pareto front of {metric} against {what}, the cheapest first",
            ("setting", axis.title, metric),
            rows,
            more=len(front) - len(rows),
        ),
    ]


def _tokens(material: Material) -> dict[int, float]:
    """The mean tokens of an answer, by the number of the setting."""
    found: dict[int, float] = {}
    for number, setting in enumerate(material.settings):
        taken = [tokens_of(answer) for cell in setting.cells for answer in cell.answers.values() if not answer.failed]
        if taken:
            found[number] = fsum(taken) / len(taken)
    return found


def _seconds(material: Material) -> dict[int, float]:
    """The mean seconds of an answer, by the number of the setting, where it was measured."""
    found: dict[int, float] = {}
    for number, setting in enumerate(material.settings):
        taken = [seconds for cell in setting.cells for seconds in material.seconds.get(cell.key, {}).values()]
        if taken:
            found[number] = fsum(taken) / len(taken)
    return found
