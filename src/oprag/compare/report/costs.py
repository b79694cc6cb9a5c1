"""Score against cost: over the length of the context, in tokens, money and time, with and without thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from oprag.compare.analysis.best import pareto_front
from oprag.compare.analysis.settings import by_data, matches, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.verdicts import length_curves
from oprag.compare.analysis.wording import (
    amount,
    change,
    counted,
    interval,
    money_text,
    name_of,
    named,
    score,
    unit_of,
    value_text,
)
from oprag.compare.report.charts.axes import Axis
from oprag.compare.report.charts.scatter import Dot, dot_legend, scatter_chart
from oprag.compare.report.overview import curve_groups, curve_name, length_chart
from oprag.compare.report.page import Figure, Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["COSTS", "compression", "lengths", "section"]

_MOST_CHARTS, _MOST_SETS = 12, 6
_MOST_ROWS, _MOST_PAIRS = 60, 200
_THRESHOLDS = ("similarity_threshold", "redundancy_threshold")
COSTS = {
    "tokens": "tokens of an answer, in and out",
    "context_tokens": "tokens of the context",
    "money": "cost of an answer",
    "seconds": "seconds of an answer, retrieval and generation",
}
"""What answers cost, in words."""


def lengths(results: Results, metric: str | None) -> Section | None:
    """All curves over the length of the context, with what each shows."""
    groups = [] if metric is None else curve_groups(length_curves(results.settings, metric, results.family(metric)))
    if metric is None or not groups:
        return None
    differ = varying_axes([group[0] for group in groups])[0]
    drawn: dict[Any, str] = {}
    parts: list[Part] = [
        Text(
            "Longer contexts contain more of what answers a question, and more of what does not: scores often rise and "
            "then fall (an inverted U). Whiskers are 95 % intervals of each mean, drawn for up to four lines. A sweet "
            "spot is named only where every other point of its curve is shown to be worse; else the curve is flat, "
            "which does not show that its points are equal."
        )
    ]
    for group in groups[:_MOST_CHARTS]:
        where = named(group[0].values, differ)
        told = [f"{curve_name(curve, group)}: {curve.describe()}." for curve in group]
        place = group[0].axis, *[(one.value, one.context_tokens, one.summary.mean) for it in group for one in it.points]
        if place in drawn:
            parts.append(Text(f"{where}: the same points as {drawn[place]}."))
            continue
        drawn[place] = where
        parts.append(length_chart(group, metric, f", {where}" if where and len(groups) > 1 else "", told))
    if len(groups) > _MOST_CHARTS:
        parts.append(
            Text(f"{counted(len(groups) - _MOST_CHARTS, 'chart')} more: `oprag compare --csv` has the figures.")
        )
    return Section("length", "Score over the length of the context", parts)


def section(results: Results, metric: str | None) -> Section | None:
    """Score against what it costs, for each data set."""
    if metric is None:
        return None
    parts: list[Part] = []
    sets = by_data(results.settings)
    tokens = results.usual_cost(metric)
    for cost, unit in ((tokens, "tokens"), ("money", ""), ("seconds", "s")):
        for data, settings in list(sets.items())[:_MOST_SETS]:
            title = f"{metric} against {'time' if cost == 'seconds' else cost.replace('_', ' ')}"
            where = f", {data}" if len(sets) > 1 else ""
            parts += _front(results, metric, title + where, Axis(COSTS[cost], unit), _paid(settings, metric, cost))
    if not parts:
        return None
    intro = Text(
        "No setting on the Pareto front is beaten by another that scores at least as high and costs at most as much. "
        "Means alone decide it: a step of the front may be chance."
    )
    if len(sets) > _MOST_SETS:
        parts.append(Text(f"{len(sets) - _MOST_SETS:,} more data sets: `oprag compare --csv` has them."))
    return Section("cost", "Score against cost", [intro, *parts])


def _paid(settings: Sequence[SettingSummary], metric: str, cost: str) -> list[tuple[SettingSummary, float]]:
    return [(one, paid) for one in settings if metric in one.scores and (paid := one.cost(cost)) is not None]


def _front(
    results: Results, metric: str, title: str, axis: Axis, paid: Sequence[tuple[SettingSummary, float]]
) -> list[Part]:
    if len(paid) < 2:
        return []
    group = next((name for name in ("method", "order", *results.axes) if name in results.axes), "method")
    dots = [
        Dot(
            cost,
            one.scores[metric].mean or 0.0,
            name_of(one.values, results.axes),
            group=value_text(one.values[group]) if group in one.values else f"without {group}",
        )
        for one, cost in paid
    ]
    front = pareto_front([dot.y for dot in dots], [dot.x for dot in dots])
    low, high = min(dot.x for dot in dots), max(dot.x for dot in dots)
    x, y = replace(axis, logarithmic=low > 0 and high >= 8 * low), Axis(metric, unit_of(metric))
    show = money_text if axis.title == COSTS["money"] else amount
    best = [f"{dots[number].name} ({show(dots[number].x)}, {dots[number].y:.3f})" for number in front[:8]]
    told = f"{len(dots):,} settings, grouped by {group}. On the Pareto front: {'; '.join(best)}."
    chart = scatter_chart(dots, title=title, description=told, x=x, y=y, front=front)
    equal: dict[tuple[float, float], list[SettingSummary]] = {}
    for number in front:
        equal.setdefault((dots[number].x, dots[number].y), []).append(paid[number][0])
    rows = [
        (_named_together(some, results.axes), show(cost), interval(some[0].scores[metric]))
        for (cost, _), some in list(equal.items())[:_MOST_ROWS]
    ]
    return [
        Figure(chart, title, x.label, y.label, dot_legend(dots), ["The line is the Pareto front."]),
        Table(
            f"The Pareto front of {title}, the cheapest first",
            ("setting", axis.title, metric),
            rows,
            more=len(equal) - len(rows),
        ),
    ]


def _named_together(settings: Sequence[SettingSummary], axes: Sequence[str]) -> str:
    """The name of a setting, or of several that score and cost the same: the values that all of them have."""
    if len(settings) == 1:
        return name_of(settings[0].values, axes)
    differ = varying_axes(settings)[0]
    shared = named(settings[0].values, [name for name in axes if name not in differ])
    told = f"any {', '.join(differ)}" if differ else ""
    return f"{', '.join(part for part in (shared, told) if part)} ({len(settings):,} settings)"


def compression(results: Results, metric: str | None) -> Section | None:
    """Each setting with thresholds beside the same one without, where there are both."""
    if not any(axis in results.axes for axis in _THRESHOLDS):
        return None
    have = [one for one in results.settings if all(axis in one.values for axis in _THRESHOLDS)]
    without = [one for one in have if all(one.values[axis] is None for axis in _THRESHOLDS)]
    with_some = [one for one in have if any(one.values[axis] is not None for axis in _THRESHOLDS)]
    pairs = list(matches(with_some, without, (*_THRESHOLDS, "min_chunks")))
    if not pairs:
        return None
    others = [axis for axis in results.axes if axis not in (*_THRESHOLDS, "min_chunks")]
    shown: dict[str, Callable[[float | None], str]] = {results.usual_cost(metric): amount}
    if any(one.cost("seconds") is not None for pair in pairs for one in pair):
        shown["seconds"] = amount
    if metric is not None:
        shown[metric] = score
    *_, last = shown
    rows: list[list[str]] = []
    for setting, base in pairs[:_MOST_PAIRS]:
        means = {name: _means(base, setting, name) for name in shown}
        _, _, count = means[last]
        row = [named(setting.values, others), _threshold(setting.values), f"{count:,}"]
        for name, (old, new, both) in means.items():
            of_others = f" (n = {both:,})" if both not in (0, count) else ""
            row += [shown[name](old), shown[name](new), change(old, new) + of_others]
        rows.append(row)
    texts = (text for name in shown for text in (f"{name} without", "with", "change"))
    head = ["setting", "thresholds", "questions", *texts]
    table = Table("Means of an answer without and with thresholds", head, rows, names=2, more=len(pairs) - len(rows))
    note = Text(
        "Means are over the questions that have a value in both settings; changes are in percent of the figure without "
        "thresholds. Whether a change of score is shown is among the differences.",
        quiet=True,
    )
    return Section("compression", "With and without thresholds", [table, note])


def _means(base: SettingSummary, setting: SettingSummary, name: str) -> tuple[float | None, float | None, int]:
    """The means of two settings over the questions that have a value in both, and how many these are."""
    both = np.array([base.by_question(name), setting.by_question(name)])
    old, new = both[:, ~np.isnan(both).any(axis=0)].tolist()
    return (fmean(old), fmean(new), len(old)) if old else (None, None, 0)


def _threshold(values: Mapping[str, Any]) -> str:
    return named({axis: values[axis] for axis in _THRESHOLDS if values[axis] is not None}, _THRESHOLDS)
