"""Score against cost: tokens, money and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.best import pareto_front
from oprag.compare.analysis.settings import by_data
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import counted, interval, value_text
from oprag.compare.plotting import plot_pareto
from oprag.compare.report.page import Figure, Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["section"]

_MAX_DATA_SETS = 6


def section(results: Results, metric: str | None) -> Section | None:
    """Score against cost, for each data set."""
    if metric is None:
        return None
    parts: list[Part] = []
    sets = by_data([one for one in results.settings if metric in one.scores])
    for cost in (results.usual_cost(metric), "money", "seconds"):
        for data, settings in list(sets.items())[:_MAX_DATA_SETS]:
            where = f", {data}" if len(sets) > 1 else ""
            parts += _front(results, metric, cost, settings, where)
    if not parts:
        return None
    intro = Text(
        "The line is the Pareto front: the settings that no other setting matches or beats in both score and cost. "
        "It only compares means, so a step may be due to chance."
    )
    if len(sets) > _MAX_DATA_SETS:
        parts.append(Text(f"{len(sets) - _MAX_DATA_SETS:,} more data sets: `oprag compare --csv` exports them."))
    return Section("cost", "Score against cost", [intro, *parts])


def _front(results: Results, metric: str, cost: str, settings: Sequence[SettingSummary], where: str) -> Iterator[Part]:
    points = [(one, paid) for one in settings if (paid := one.cost(cost)) is not None]
    if len(points) < 2:
        return
    group = next((name for name in ("method", "order", *results.axes) if name in results.axes), "method")
    groups = [value_text(one.values[group]) if group in one.values else f"without {group}" for one, _ in points]
    scores, costs = [one.scores[metric].mean or 0.0 for one, _ in points], [paid for _, paid in points]
    what = cost.replace("_", " ")
    title = f"{metric} against {what}{where}"
    plot = plot_pareto(scores, costs, groups, metric=metric, cost=cost)
    yield Figure(plot, title, f"{counted(len(points), 'setting')}, grouped by {group}.")
    rows = [
        (results.label(one), one.cost_text(cost), interval(one.scores[metric]))
        for one, _ in (points[place] for place in pareto_front(scores, costs))
    ]
    yield Table(
        f"Pareto front of {title}, cheapest first", ("setting", f"{cost.replace('_', ' ')} per answer", metric), rows
    )
