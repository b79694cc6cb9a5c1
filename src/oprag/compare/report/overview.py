"""The overview: warnings, a verdict on each question, and the two charts that support the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.effects import OrderEffect, order_effects
from oprag.compare.analysis.settings import by_data, varying_axes
from oprag.compare.analysis.wording import counted, difference_text, named, value_text
from oprag.compare.metrics.registry import METRICS
from oprag.compare.plotting import plot_differences
from oprag.compare.report.lengths import MAX_DATA_SETS, curve_groups, length_parts
from oprag.compare.report.page import Figure, Part, Points, Section, Text, Verdicts
from oprag.compare.results import Results
from oprag.compare.stats.difference import FEW_UNITS

__all__ = ["section"]

_MAX_ROWS = 12


def section(results: Results, metric: str | None) -> Section:
    """The first section of the report."""
    return Section("overview", "In short", [*_parts(results, metric)])


def _parts(results: Results, metric: str | None) -> Iterator[Part]:
    yield Text(_about(results, metric), quiet=True)
    if notes := [*_notes(results, metric)]:
        yield Points(notes, warning=True)
    if metric is None:
        yield Text("No answers have scores.")
        return
    verdicts = results.verdicts(metric)
    questions = list(dict.fromkeys(one.question for one in verdicts))
    yield Verdicts(
        [
            (question, [(f"{one.data and f'{one.data}: '}{one.answer}.", one.text) for one in about[:MAX_DATA_SETS]])
            for question in questions
            if (about := [one for one in verdicts if one.question == question])
        ]
    )
    sets = by_data([one for one in results.settings if metric in one.scores])
    if len(sets) > MAX_DATA_SETS:
        yield Text(f"{len(sets) - MAX_DATA_SETS:,} more data sets are in the sections below.", quiet=True)
    groups = curve_groups(results, metric)
    for data in list(sets)[:MAX_DATA_SETS]:
        effects = order_effects(results.matrix, metric, data, family=results.family(metric))
        if any(effect.difference.differing for effect in effects):
            yield _forest(effects, metric, f", {data}" if len(sets) > 1 else "")
        if data in groups:
            yield length_parts(results, groups[data][0])[0]


def _about(results: Results, metric: str | None) -> str:
    matrix = results.matrix
    models = list(dict.fromkeys(str(one.values["model"]) for one in results.settings if "model" in one.values))
    parts = [
        counted(len(matrix.questions), "question"),
        counted(len(results), "setting"),
        counted(sum(one.answered for one in results.settings), "answer"),
        f"main metric {metric}" if metric is not None else "",
        f"{'model' if len(models) == 1 else 'models'} {', '.join(models[:MAX_DATA_SETS])}" if models else "no model",
    ]
    return " · ".join(part for part in parts if part)


def _notes(results: Results, metric: str | None) -> Iterator[str]:
    """Warnings that a reader must see before any score."""
    answered, failed, remaining, short, empty = (
        sum(getattr(one, name) for one in results.settings)
        for name in ("answered", "failed", "remaining", "cut_short", "empty")
    )
    for count, what in ((short, "cut short at the output limit of the model"), (empty, "empty")):
        if count:
            verb, scored = ("is", "scored as it is") if count == 1 else ("are", "scored as they are")
            yield f"{count:,} of {counted(answered, 'answer')} {verb} {what}, {scored}."
    if failed:
        yield f"{counted(failed, 'answer')} failed and {'has' if failed == 1 else 'have'} no score."
    if remaining:
        were = "was" if remaining == 1 else "were"
        yield f"{counted(remaining, 'answer')} {were} not tried yet; run `oprag compare` again."
    for data, settings in by_data(results.settings).items():
        summaries = [one.scores[metric] for one in settings if metric is not None and metric in one.scores]
        total = sum(question.data == data for question in results.matrix.questions)
        if summaries and not failed and not remaining and (with_score := max(one.n for one in summaries)) < total:
            needs = METRICS[metric].needs if metric in METRICS else ""
            why = f": the others do not have {needs}" if needs else ""
            yield f"{with_score:,} of {total:,} questions of {data} have a score of {metric}{why}."
        units = max((one.units for one in summaries), default=FEW_UNITS)
        if units < FEW_UNITS:
            yield f"Intervals of {data} come from only {units:,} questions or documents, so they are too narrow."


def _forest(effects: Sequence[OrderEffect], metric: str, where: str) -> Figure:
    # Omit pairs with equal scores on every question, and a single pair, which equals its pooled row.
    several = {one.order for one in effects if one.pooled and one.pairs > 1}
    single = [one for one in effects if not one.pooled and one.order in several]
    differ = varying_axes(single)[0]
    rows = [one for one in effects if one.pooled or (one in single and not one.difference.tied)]
    if len(rows) > _MAX_ROWS:
        rows = [one for one in rows if one.pooled]
    names = [
        f"{value_text(one.order)}{f', all {one.pairs:,} pairs' if one.pairs > 1 else ''}"
        if one.pooled
        else named({**one.values, "order": one.order}, differ)
        for one in rows
    ]
    told = [(name, -one.difference, one.pooled) for name, one in zip(names, rows, strict=True)]
    return Figure(
        plot_differences(told, label=f"{metric}, other order minus source order"),
        f"Each other order minus source order{where}",
        "; ".join(f"{name}: {difference_text(one)}" for name, one, _ in told),
    )
