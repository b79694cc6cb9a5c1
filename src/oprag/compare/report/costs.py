"""Score against tokens and against time, with the settings that nothing cheaper is as good as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from oprag.compare.analysis.best import pareto_front
from oprag.compare.analysis.wording import amount, interval, unit_of, value_text
from oprag.compare.report.charts.axes import Axis
from oprag.compare.report.charts.scatter import Dot, dot_legend, scatter_chart
from oprag.compare.report.material import COSTS, Material
from oprag.compare.report.page import Figure, Part, Section, Table, Text

__all__ = ["section"]

_MOST_SETS = 6
_MOST = 60  # rows of the table of a front


def section(material: Material) -> Section | None:
    """Score against what it costs, for each data set."""
    parts: list[Part] = []
    for cost, what, axis in (
        (material.cost, "tokens", Axis(COSTS[material.cost], "tokens")),
        ("seconds", "time", Axis("time of an answer, retrieval and generation", "s")),
    ):
        for data, settings in list(material.by_data.items())[:_MOST_SETS]:
            title = f"{material.metric} against {what}" + (f", {data}" if len(material.by_data) > 1 else "")
            paid = {one.number: mean for one in settings if (mean := one.cost(cost)) is not None}
            parts += _parts(material, title, axis, paid)
    if not parts:
        return None
    parts.insert(
        0,
        Text(
            "No setting on the Pareto front is beaten by another that scores at least as high and costs at most as "
            "much. Means alone decide it: a step of the front may be chance."
        ),
    )
    if len(material.by_data) > _MOST_SETS:
        parts.append(Text(f"{len(material.by_data) - _MOST_SETS:,} more data sets: `oprag compare --csv` has them."))
    return Section("cost", "Score against tokens and time", parts)


def _parts(material: Material, title: str, axis: Axis, costs: Mapping[int, float]) -> list[Part]:
    metric = material.metric
    places = [number for number in costs if metric is not None and metric in material.settings[number].scores]
    if metric is None or len(places) < 2:
        return []
    group = next((axis for axis in ("method", "order", *material.differ) if axis in material.differ), "method")
    dots = []
    for number in places:
        row = material.settings[number]
        value = row.values.get(group)
        dots.append(
            Dot(costs[number], row.scores[metric].mean or 0.0, material.name(row.values), group=value_text(value))
        )
    front = pareto_front([dot.y for dot in dots], [dot.x for dot in dots])
    low, high = min(dot.x for dot in dots), max(dot.x for dot in dots)
    best = [f"{dots[number].name} ({amount(dots[number].x)}, {dots[number].y:.3f})" for number in front[:8]]
    x, y = replace(axis, logarithmic=low > 0 and high >= 8 * low), Axis(metric, unit_of(metric))
    chart = scatter_chart(
        dots,
        title=title,
        description=f"{len(dots):,} settings, grouped by {group}. On the Pareto front: {'; '.join(best)}.",
        x=x,
        y=y,
        front=front,
    )
    rows = [
        (dots[number].name, amount(dots[number].x), interval(material.settings[places[number]].scores[metric]))
        for number in front[:_MOST]
    ]
    return [
        Figure(chart, title, x.label, y.label, dot_legend(dots)),
        Table(
            f"The Pareto front of {title}, the cheapest first",
            ("setting", axis.title, metric),
            rows,
            more=len(front) - len(rows),
        ),
    ]
