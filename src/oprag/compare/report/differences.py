"""Differences by question field, and differences between all settings that differ in only one axis."""

from __future__ import annotations

from oprag.compare.analysis.differences import SettingDifference, axis_pairs
from oprag.compare.analysis.main_effects import slices_of
from oprag.compare.analysis.settings import by_data
from oprag.compare.analysis.wording import counted, difference_text, named, value_text
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["section", "slices"]

_MAX_PAIRS = 400
_MIN_QUESTIONS = 10


def slices(results: Results, metric: str) -> Section | None:
    """Effect of the order by question field, for fields whose values all have at least ten questions."""
    if "order" not in results.axes:
        return None
    sets = by_data([one for one in results.settings if metric in one.scores])
    rows = [
        (
            f"{f'{data}, ' if len(sets) > 1 else ''}{field} {value_text(value)}",
            value_text(one.value),
            difference_text(one.difference),
            f"{one.difference.n:,}",
        )
        for data in sets
        for field in results.matrix.field_names
        if (found := slices_of(results.matrix, field, metric, data=data))
        and min(one.difference.n for effects in found.values() for one in effects) >= _MIN_QUESTIONS
        for value, effects in found.items()
        for one in effects
    ]
    if not rows:
        return None
    intro = Text(
        "Each other order minus source order, averaged for each question over all settings that differ only in the "
        "order; corrected for the rows of one field. A difference that is significant in only one row does not mean "
        "that rows differ from each other."
    )
    head = ("questions with", "order", "minus source [95 % interval]", "questions")
    return Section("slices", "Where order matters", [intro, Table(f"{metric} by question field", head, rows, names=2)])


def section(results: Results, metric: str) -> Section | None:
    """All pairs of settings that differ in only one axis, the lowest p first."""
    counts = {axis: len([*axis_pairs(results.matrix, axis)]) for axis in results.axes if axis != "data"}
    too_many = [axis for axis, count in counts.items() if count > _MAX_PAIRS]
    pairs = [pair for axis in counts if axis not in too_many for pair in results.differences(axis, [metric])]
    differing = sorted((pair for pair in pairs if not pair.difference.tied), key=_lowest_p)
    parts: list[Part] = []
    if differing:
        head = ("difference", "in the setting", f"{metric} [95 % interval]", "questions", "p (corrected)")
        caption = "Differences between settings, lowest p first"
        parts.append(Table(caption, head, [_row(results, pair) for pair in differing], names=2))
    if tied := len(pairs) - len(differing):
        parts.append(Text(f"Not listed: {counted(tied, 'pair')} with equal scores on every question.", quiet=True))
    if too_many:
        axes = " or ".join(too_many)
        parts.append(Text(f"Not listed: more than {_MAX_PAIRS:,} pairs differ only in {axes}.", quiet=True))
    comparisons = counted(results.matrix.family(metric).comparisons, "comparison")
    intro = Text(
        "Each setting minus the one that differs from it only in one axis, over the questions with scores in both. "
        "* is significant: the interval excludes 0, and p is below 0.05, corrected for "
        f"{comparisons} (step-down maxT of Westfall and Young). Settings without a significant difference may still "
        "differ."
    )
    return Section("differences", "All differences", [intro, *parts]) if parts else None


def _row(results: Results, pair: SettingDifference) -> tuple[str, ...]:
    axis, difference = pair.axis or "", pair.difference
    where = named(pair.setting.values, [name for name in results.axes if name != axis])
    against = named(pair.baseline.values, [name for name in results.axes if name not in pair.setting.values])
    return (
        f"{named(pair.setting.values, [axis])} minus {named(pair.baseline.values, [axis])}",
        f"{where} (against {against})".strip() if against else where or "–",
        difference_text(difference),
        f"{difference.n:,}",
        "–" if difference.adjusted_p is None else f"{difference.adjusted_p:.2g}",
    )


def _lowest_p(pair: SettingDifference) -> tuple[float, float]:
    adjusted = pair.difference.adjusted_p
    return 2.0 if adjusted is None else adjusted, -abs(pair.difference.mean or 0.0)
