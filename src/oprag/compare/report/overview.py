"""The overview: warnings, a verdict on each question, and the two charts that support the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.effects import Effect, effects_of
from oprag.compare.analysis.settings import by_data, varying_axes
from oprag.compare.analysis.wording import counted, difference_text, named, value_text
from oprag.compare.metrics.registry import METRICS
from oprag.compare.plotting import plot_differences
from oprag.compare.report.lengths import MAX_DATA_SETS, curve_groups, length_parts
from oprag.compare.report.page import Figure, Part, Points, Section, Text, Verdicts
from oprag.compare.results import Results
from oprag.compare.stats import FEW_UNITS, Difference

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
        effects = effects_of(results.matrix, metric, data=data)
        if any(effect.difference.differing for effect in effects):
            yield _forest(results, effects, metric, f", {data}" if len(sets) > 1 else "")
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


def _forest(results: Results, effects: Sequence[Effect], metric: str, where: str) -> Figure:
    family = results.matrix.family(metric)
    # Omit a single pair, which equals its pooled row, and pairs with equal scores on every question.
    others = [other for one in effects if len(one.pairs) > 1 for _, other in one.pairs]
    differ = ["order", *varying_axes(results.settings[other] for other in others)[0]]
    rows: list[tuple[str, Difference, bool]] = []
    for one in effects:
        count = len(one.pairs)
        rows.append((f"{value_text(one.value)}{f', all {count:,} pairs' if count > 1 else ''}", one.difference, True))
        for first, other in one.pairs if count > 1 else ():
            difference = family.compare(other, first)
            if not difference.tied:
                rows.append((named(results.settings[other].values, dict.fromkeys(differ)), difference, False))
    if len(rows) > _MAX_ROWS:
        rows = [row for row in rows if row[2]]
    return Figure(
        plot_differences(rows, label=f"{metric}, other order minus source order"),
        f"Each other order minus source order{where}",
        "; ".join(f"{name}: {difference_text(one)}" for name, one, _ in rows),
    )
