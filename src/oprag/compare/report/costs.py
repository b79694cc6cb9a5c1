"""Score against cost: tokens, money and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.best import pareto_front
from oprag.compare.analysis.settings import by_data, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import (
    amount,
    interval,
    money_text,
    name_of,
    named,
    unit_of,
    value_text,
)
from oprag.compare.report.charts import ChartAxis, Point, Series, legend, scatter_chart
from oprag.compare.report.page import Figure, Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["COSTS", "section"]

_MAX_DATA_SETS = 6
COSTS = {
    "tokens": "tokens per answer, input and output",
    "context_tokens": "context tokens",
    "money": "cost per answer",
    "seconds": "seconds per answer",
}
"""The label of each cost."""
_UNITS = {"money": "", "seconds": "s"}


def section(results: Results, metric: str | None) -> Section | None:
    """Score against cost, for each data set."""
    if metric is None:
        return None
    parts: list[Part] = []
    sets = by_data(results.settings)
    for cost in (results.usual_cost(metric), "money", "seconds"):
        for data, settings in list(sets.items())[:_MAX_DATA_SETS]:
            title = f"{metric} against {'time' if cost == 'seconds' else cost.replace('_', ' ')}"
            where = f", {data}" if len(sets) > 1 else ""
            parts += _front(results, metric, title + where, cost, settings)
    if not parts:
        return None
    intro = Text(
        "The line is the Pareto front: the settings that no other setting matches or beats in both score and cost. "
        "It only compares means, so a step may be due to chance."
    )
    if len(sets) > _MAX_DATA_SETS:
        parts.append(Text(f"{len(sets) - _MAX_DATA_SETS:,} more data sets: `oprag compare --csv` exports them."))
    return Section("cost", "Score against cost", [intro, *parts])


def _front(results: Results, metric: str, title: str, cost: str, settings: Sequence[SettingSummary]) -> Iterator[Part]:
    points = [
        (one, Point(paid, one.scores[metric].mean or 0.0, name_of(one.values, results.axes)))
        for one in settings
        if metric in one.scores and (paid := one.cost(cost)) is not None
    ]
    if len(points) < 2:
        return
    group = next((name for name in ("method", "order", *results.axes) if name in results.axes), "method")
    groups: dict[str, list[Point]] = {}
    for one, point in points:
        name = value_text(one.values[group]) if group in one.values else f"without {group}"
        groups.setdefault(name, []).append(point)
    equal: dict[tuple[float, float], list[SettingSummary]] = {}
    for number in pareto_front([point.y for _, point in points], [point.x for _, point in points]):
        one, point = points[number]
        equal.setdefault((point.x, point.y), []).append(one)
    series = [Series(name, some) for name, some in groups.items()]
    x, y = ChartAxis(COSTS[cost], _UNITS.get(cost, "tokens")), ChartAxis(metric, unit_of(metric))
    description = f"{len(points):,} settings, grouped by {group}; the line is the Pareto front."
    chart = scatter_chart(series, title=title, description=description, x=x, y=y, front=list(equal))
    yield Figure(chart, title, x.label, y.label, legend(series, lines=False) if len(series) > 1 else ())
    show = money_text if cost == "money" else amount
    rows = [
        (_named_together(some, results.axes), show(paid), interval(some[0].scores[metric]))
        for (paid, _), some in equal.items()
    ]
    yield Table(f"Pareto front of {title}, cheapest first", ("setting", COSTS[cost], metric), rows)


def _named_together(settings: Sequence[SettingSummary], axes: Sequence[str]) -> str:
    """The name of a setting, or the shared values of several settings with equal score and cost."""
    if len(settings) == 1:
        return name_of(settings[0].values, axes)
    differ = varying_axes(settings)[0]
    shared = named(settings[0].values, [name for name in axes if name not in differ])
    varying = f"any {', '.join(differ)}" if differ else ""
    return f"{', '.join(part for part in (shared, varying) if part)} ({len(settings):,} settings)"
