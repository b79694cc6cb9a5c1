"""Charts: order effects, score over context length, and score against cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from oprag.compare.analysis.best import Curve
from oprag.compare.analysis.differences import effects_of
from oprag.compare.analysis.settings import by_data, counted, named, value_text
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.verdicts import length_curves
from oprag.compare.plotting import pareto_front, plot_curves, plot_differences, plot_pareto
from oprag.compare.report.page import Figure, Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["costs", "length_figures", "lengths", "order_figures", "usual_cost"]

_MAX_CHARTS = 8  # of a section
_ORDER_AXES = ("order", "source_ranking")


def order_figures(results: Results, metric: str) -> Iterator[Figure]:
    """For each data set, the difference of each other order to source order."""
    for where, settings in _by_data(results, metric):
        effects = effects_of(results.matrix, metric, data=settings[0].values["data"])
        if any(one.difference.differing for one in effects):
            rows = [(f"{value_text(one.value)}, {counted(len(one.pairs), 'pair')}", one.difference) for one in effects]
            yield Figure(
                plot_differences(rows, label=f"{metric}, other order minus source order"),
                f"Each other order minus source order{where}",
                "Averaged over all pairs of settings that differ only in the order; filled if significant.",
            )


def length_figures(results: Results, metric: str) -> Iterator[Figure]:
    """Score over context length: a chart of each group of curves that differ only in the order.

    The groups with the most points come first.
    """
    groups: dict[str, list[Curve]] = {}
    for curve in length_curves(results.matrix, metric):
        shared = sorted((name, str(value)) for name, value in curve.values.items() if name not in _ORDER_AXES)
        groups.setdefault(f"{curve.axis} {shared}", []).append(curve)
    for group in sorted(groups.values(), key=lambda group: -sum(len(curve.points) for curve in group)):
        in_tokens = all(one.cost("context_tokens") is not None for curve in group for one in curve.points)
        names = [
            named(curve.values, [name for name in _ORDER_AXES if name in results.axes]) or metric for curve in group
        ]
        where = named(group[0].values, [name for name in results.axes if name not in _ORDER_AXES])
        yield Figure(
            plot_curves(group, names, x="context_tokens" if in_tokens else group[0].axis),
            f"{metric} over context length{where and f', {where}'}",
            " ".join(f"{name}: {curve.describe()}." for name, curve in zip(names, group, strict=True)),
        )


def lengths(results: Results, metric: str) -> Section | None:
    """The charts of score over context length but the first one, which is in the overview."""
    figures = [*islice(length_figures(results, metric), 1, 1 + _MAX_CHARTS)]
    return Section("length", "Score over context length", figures) if figures else None


def costs(results: Results, metric: str) -> Section | None:
    """Score against tokens, money and time, with the Pareto front, for each data set."""
    parts = [
        part
        for where, settings in _by_data(results, metric)
        for cost in (usual_cost(results, metric), "money", "seconds")
        for part in _front(results, metric, cost, settings, where)
    ]
    intro = Text(
        "The line is the Pareto front: the settings that no other setting matches or beats in both score and cost. "
        "It only compares means, so a step may be due to chance."
    )
    return Section("cost", "Score against cost", [intro, *parts]) if parts else None


def usual_cost(results: Results, metric: str) -> str:
    """The main cost: tokens if every setting with scores calls a model, else context tokens."""
    asking = all(one.asks_model for one in results.settings if metric in one.scores)
    return "tokens" if asking else "context_tokens"


def _front(results: Results, metric: str, cost: str, settings: list[SettingSummary], where: str) -> Iterator[Part]:
    points = [(one, price) for one in settings if (price := one.cost(cost)) is not None]
    if len(points) < 2:
        return
    group = next((name for name in ("method", "order", *results.axes) if name in results.axes), "method")
    groups = [value_text(one.values[group]) if group in one.values else f"without {group}" for one, _ in points]
    scores, paid = [one.scores[metric].mean or 0.0 for one, _ in points], [price for _, price in points]
    name = cost.replace("_", " ")
    title = f"{metric} against {name}{where}"
    plot = plot_pareto(scores, paid, groups, metric=metric, cost=cost)
    yield Figure(plot, title, f"{counted(len(points), 'setting')}, grouped by {group}.")
    front = [points[place][0] for place in pareto_front(scores, paid)]
    rows = [(one.label, one.cost_text(cost), one.scores[metric].describe()) for one in front]
    yield Table(f"Pareto front of {title}, cheapest first", ("setting", f"{name} per answer", metric), rows)


def _by_data(results: Results, metric: str) -> Iterator[tuple[str, list[SettingSummary]]]:
    """The settings with scores of each data set that has charts, with its name if there are several."""
    sets = by_data([one for one in results.settings if metric in one.scores])
    for data, settings in list(sets.items())[:_MAX_CHARTS]:
        yield f", {data}" if len(sets) > 1 else "", settings
