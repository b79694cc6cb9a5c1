"""Differences by question field, and differences between all settings that differ in only one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.effects import slices_of
from oprag.compare.analysis.settings import by_data
from oprag.compare.analysis.wording import counted, difference_text, named, value_text
from oprag.compare.report.page import Heading, Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["section", "slices"]

_MAX_PAIRS = 400
_MIN_QUESTIONS = 10


def slices(results: Results, metric: str | None) -> Section | None:
    """Effect of the order by question field, for fields whose values all have at least ten questions."""
    if metric is None or "order" not in results.axes:
        return None
    sets = by_data([one for one in results.settings if metric in one.scores])
    rows = [
        (
            f"{f'{data}, ' if len(sets) > 1 else ''}{field} {value_text(one.value)}",
            value_text(one.effect.value),
            difference_text(one.effect.difference),
            f"{one.effect.difference.n:,}",
            f"{one.contrast}",
        )
        for data in sets
        for field in results.fields
        if (found := slices_of(results.matrix, field, metric, data=data))
        and min(one.questions for one in found) >= _MIN_QUESTIONS
        for one in found
    ]
    if not rows:
        return None
    intro = Text(
        "Each other order minus source order, averaged for each question over all settings that differ only in the "
        "order; corrected for the rows of one field. A difference that is significant in only one row does not mean "
        "that rows differ from each other: the last column, with uncorrected intervals, shows whether they do."
    )
    head = ("questions with", "order", "minus source [95 % interval]", "questions", "that minus other questions")
    return Section("slices", "Where order matters", [intro, Table(f"{metric} by question field", head, rows, names=2)])


def section(results: Results, metric: str | None) -> Section | None:
    """The differences along each axis, the order first."""
    if metric is None:
        return None
    parts: list[Part] = []
    for axis in sorted((name for name in results.axes if name != "data"), key=lambda name: name != "order"):
        count = results.count_pairs(axis)
        if count > _MAX_PAIRS:
            text = f"{count:,} pairs of settings differ only in {axis}: `Results.differences` compares them."
            parts += [Heading(axis), Text(text)]
        elif pairs := results.differences(axis, [metric]):
            parts += _axis(results, axis, pairs)
    if not parts:
        return None
    intro = Text(
        "Each setting minus the setting that differs from it only in one axis, over the questions with scores in "
        "both. A star marks a significant difference: the interval excludes 0, and p is below 0.05. The absence of a "
        "star does not prove that two settings are equal. p is from a sign-flip test, corrected for all "
        f"{counted(results.matrix.family(metric).comparisons, 'comparison')} of this experiment in {metric} (step-down "
        "maxT of Westfall and Young)."
    )
    return Section("differences", "All differences by axis", [intro, *parts])


def _axis(results: Results, axis: str, pairs: Sequence[SettingDifference]) -> Iterator[Part]:
    first = named(pairs[0].baseline.values, [axis])
    yield Heading(f"{axis}: each value minus {first}")
    differing = [pair for pair in pairs if not pair.difference.tied]
    if tied := len(pairs) - len(differing):
        yield Text(f"Not listed: {counted(tied, 'pair')} with equal scores on every question.")
    if differing:
        yield Table(
            f"Mean difference in {pairs[0].metric}, lowest p first",
            (axis, "in the setting", f"minus {first} [95 % interval]", "questions", "p (corrected)"),
            [_row(results, axis, pair) for pair in sorted(differing, key=_lowest_p)],
            names=2,
        )


def _row(results: Results, axis: str, pair: SettingDifference) -> tuple[str, ...]:
    difference = pair.difference
    where = named(pair.setting.values, [name for name in results.axes if name != axis])
    against = named(pair.baseline_alone, results.axes)
    return (
        value_text(pair.value),
        f"{where} (against {against})".strip() if against else where or "–",
        difference_text(difference),
        f"{difference.n:,}",
        "–" if difference.adjusted_p is None else f"{difference.adjusted_p:.2g}",
    )


def _lowest_p(pair: SettingDifference) -> tuple[float, float]:
    adjusted = pair.difference.adjusted_p
    return 2.0 if adjusted is None else adjusted, -abs(pair.difference.mean or 0.0)
