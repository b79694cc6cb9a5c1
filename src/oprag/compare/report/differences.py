"""Differences by question field, and differences between all settings that differ in only one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.settings import by_data
from oprag.compare.analysis.slices import Slice, slices_of
from oprag.compare.analysis.wording import counted, difference_text, named, value_text
from oprag.compare.report.overview import forest_of
from oprag.compare.report.page import Heading, Part, Points, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["section", "slices"]

_MAX_PAIRS = 400
_MAX_FIELDS, _MIN_QUESTIONS = 6, 10
_MAX_DATA_SETS = 4


def slices(results: Results, metric: str | None) -> Section | None:
    """Effect of the order by question field, for fields whose values all have at least ten questions."""
    if metric is None or "order" not in results.axes:
        return None
    parts: list[Part] = []
    more_fields = 0
    sets = by_data([one for one in results.settings if metric in one.scores])
    for data in list(sets)[:_MAX_DATA_SETS]:
        where = f", {data}" if len(sets) > 1 else ""
        of_fields = [slices_of(results.matrix, name, metric, data=data) for name in results.fields]
        found = [some for some in of_fields if some and min(one.questions for one in some) >= _MIN_QUESTIONS]
        more_fields += len(found[_MAX_FIELDS:])
        for some in found[:_MAX_FIELDS]:
            parts += _slice_parts(some, metric, where)
    if not parts:
        return None
    intro = Text(
        "Each other order minus source order, averaged for each question over all settings that differ only in the "
        "order; p-values are corrected for all rows of a plot. If a difference is significant in only one row, "
        "that does not mean that the rows differ from each other: the intervals below each plot show whether they do."
    )
    more = [Text(f"{counted(more_fields, 'field')} more: `Results.slices` returns them.")] if more_fields else []
    return Section("slices", "Where order matters", [intro, *parts, *more])


def _slice_parts(some: Sequence[Slice], metric: str, where: str) -> Iterator[Part]:
    field = some[0].field
    rows = [
        (
            f"{value_text(one.other)}; {field} {value_text(one.value)}, n = {one.difference.n:,}",
            -one.difference,
            False,
        )
        for one in some
    ]
    yield Heading(f"By {field}{where}")
    yield forest_of(rows, f"Each other order minus source order in {metric}, by {field}{where}")
    # With two slices, the second contrast is the first one with the opposite sign.
    values = list(dict.fromkeys(one.value for one in some))
    contrasts = [
        f"{field} {value_text(one.value)} minus {_others(values, one.value)}, {value_text(one.other)} order: "
        f"{-contrast}"
        for one in some
        if one.value != values[-1] or len(values) > 2
        if (contrast := one.contrast).mean is not None and contrast.low is not None
    ]
    if contrasts:
        yield Text("Differences between these groups of questions, with uncorrected 95 % intervals:", quiet=True)
        yield Points(contrasts)


def _others(values: Sequence[object], value: object) -> str:
    others = [value_text(one) for one in values if one != value]
    return others[0] if len(others) == 1 else "all others"


def section(results: Results, metric: str | None) -> Section | None:
    """The differences along each axis, the order first."""
    if metric is None:
        return None
    parts: list[Part] = []
    for axis in sorted((name for name in results.axes if name != "data"), key=lambda name: name != "order"):
        count = results.count_pairs(axis)
        if count > _MAX_PAIRS:
            parts.append(
                Text(
                    f"{count:,} pairs of settings differ only in {axis}, too many to compare here: "
                    f'`Results.open("{results.path.name}").differences("{axis}")` returns them.'
                )
            )
        elif pairs := results.differences(axis, [metric]):
            parts += _axis(results, axis, pairs)
    if not parts:
        return None
    intro = Text(
        "Each setting minus the setting that differs from it only in one axis, over the questions with scores in "
        "both, with the 95 % bootstrap interval of the mean difference. A star marks a significant difference: the "
        "interval excludes 0, and p is below 0.05. The absence of a star does not prove that two settings are equal. "
        "p is from a sign-flip test, corrected for all "
        f"{counted(results.family(metric).comparisons, 'comparison')} of this experiment in {metric}: along each axis, "
        "of the highest setting with all others, and of the highest point of each curve with its other points "
        "(step-down maxT of Westfall and Young)."
    )
    return Section("differences", "All differences by axis", [intro, *parts])


def _axis(results: Results, axis: str, pairs: Sequence[SettingDifference]) -> Iterator[Part]:
    first = value_text(pairs[0].baseline_value)
    yield Heading(f"{axis}: others against {first}")
    tied = [pair for pair in pairs if pair.difference.tied]
    pairs = [pair for pair in pairs if not pair.difference.tied]
    if tied:
        yield Text(f"Not listed: {counted(len(tied), 'pair')} with equal scores on every question.")
    controls: dict[int, list[SettingDifference]] = {}
    for pair in pairs:
        if pair.baseline_alone:
            controls.setdefault(pair.setting.number, []).append(pair)
    # Fold the comparisons of a control with many baselines into one row.
    folded = {number: some for number, some in controls.items() if len(some) > 1}
    single = [pair for pair in pairs if not pair.baseline_alone or pair.setting.number not in folded]
    rows = [_folded(some) for some in folded.values()]
    rows += [_row(results, axis, pair) for pair in sorted(single, key=_lowest_p)]
    if rows:
        yield Table(
            f"Mean difference in {pairs[0].metric} from {axis} {first}, lowest p first",
            (axis, "in the setting", "difference [95 % interval]", "questions", "p (corrected)"),
            rows,
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


def _folded(some: Sequence[SettingDifference]) -> tuple[str, ...]:
    means = [pair.difference.mean for pair in some if pair.difference.mean is not None]
    shown = sum(pair.difference.significant for pair in some)
    ends = f"{min(means):+z.3f} to {max(means):+z.3f}" if means else "–"
    return (
        value_text(some[0].value),
        f"against {len(some):,} settings",
        f"{ends}; significant in {shown:,} of {len(some):,}",
        f"{max(pair.difference.n for pair in some):,}",
        "–",
    )


def _lowest_p(pair: SettingDifference) -> tuple[float, float]:
    adjusted = pair.difference.adjusted_p
    return 2.0 if adjusted is None else adjusted, -abs(pair.difference.mean or 0.0)
