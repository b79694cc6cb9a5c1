"""The sections that are tables: settings, differences between them, differences by question field, measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from oprag.compare.analysis.differences import SettingDifference, slices_of
from oprag.compare.analysis.settings import by_data, counted, difference_text, listed, named, value_text
from oprag.compare.analysis.summary import MANY, PROBLEMS, SettingSummary, ranked
from oprag.compare.report.charts import usual_cost
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["all_settings", "differences", "measured", "slices"]

_METRICS = 5  # columns of a table, to fit the width of a page
_MEASURED = {"seconds": 3, "cpu_seconds": 3, "cpu_percent": 0, "peak_memory_mib": 0}
"""The measurements, with their decimals."""
_USAGE = ("calls", "input_tokens", "output_tokens", "context_tokens")


def all_settings(results: Results, metric: str | None, axis: str = "order") -> tuple[list[Part], list[Part]]:
    """The table of settings by the main metric, with the differences along an axis, and the tables of all else.

    All are sorted by the main metric; without one, there are only the other tables.
    """
    if not any(one.answered or one.failed for one in results.settings):
        return [], []
    settings = results.settings if metric is None else ranked(results.settings, metric)
    notes = []
    if any(one.estimated for one in settings):
        counted = "~ counted by oprag, since the model did not report the tokens of all answers."
        notes.append(Text(counted, quiet=True))
    if any(one.doubtful for one in settings):
        notes.append(
            Text(
                f"! marks settings with this problem in more than {MANY:.0%} of the answers, so their scores are not "
                "reliable. If replies are cut short, increase max_tokens of the model."
            )
        )
    if any(one.cells > 1 for one in settings):
        notes.append(Text("The scores of each question are first averaged over seeds and repeats.", quiet=True))
    rest: list[Part] = []
    others = [name for name in results.metrics if name != metric]
    for start in range(0, len(others), _METRICS):
        some = others[start : start + _METRICS]
        columns = {name: _scores(settings, name) for name in some}
        rest.append(_table(f"{listed(some)}, with 95 % intervals", settings, columns))
    columns = {"answers": [f"{one.answered:,} of {one.asked:,}" for one in settings]}
    for name in _USAGE:
        if any(one.per_answer.get(name) for one in settings):
            columns[name.replace("_", " ")] = [one.cost_text(name) for one in settings]
    rest.append(_table("Mean usage per answer", settings, columns))
    return ([], [*notes, *rest]) if metric is None else ([_main(results, settings, metric, axis), *notes], rest)


def _main(results: Results, settings: Sequence[SettingSummary], metric: str, first_axis: str) -> Table:
    columns = {metric: _scores(settings, metric)}
    caption = f"{metric} with 95 % interval, highest first"
    # Differences along the first axis in which settings have exactly one baseline, `first_axis` if possible.
    for axis in sorted((name for name in results.axes if name != "data"), key=lambda name: name != first_axis):
        pairs = results.differences(axis, [metric])
        several = Counter(one.setting.number for one in pairs)
        if baselines := {one.setting.number: one for one in pairs if several[one.setting.number] == 1}:
            title = f"minus {named(next(iter(baselines.values())).baseline.values, [axis])}"
            columns[title] = [_difference(baselines.get(one.number)) for one in settings]
            caption += f"; the difference is from the setting that differs only in {axis}, * if significant"
            break
    costs = [usual_cost(results, metric), *(["money"] if any("money" in one.per_answer for one in settings) else [])]
    columns |= {cost.replace("_", " "): [one.cost_text(cost) for one in settings] for cost in costs}
    for name, title in PROBLEMS.items():
        if any(counts := [int(getattr(one, name)) for one in settings]):
            marks = [" !" if count > MANY * one.answered else "" for count, one in zip(counts, settings, strict=True)]
            columns[title] = [f"{count:,}{mark}" for count, mark in zip(counts, marks, strict=True)]
    return _table(f"{caption}; {listed([*costs]).replace('_', ' ')} are means per answer", settings, columns)


def _difference(one: SettingDifference | None) -> str:
    if one is None:
        return "–"
    return "equal" if one.difference.tied else difference_text(one.difference)


def _scores(settings: Sequence[SettingSummary], metric: str) -> list[str]:
    """Means with intervals; and the number of questions if more were answered, here or elsewhere in the data set."""
    summaries = [one.scores.get(metric) for one in settings]
    most: dict[str, int] = {}
    for one, summary in zip(settings, summaries, strict=True):
        if summary is not None:
            most[one.values["data"]] = max(most.get(one.values["data"], 0), summary.n)
    return [
        "–"
        if summary is None
        else summary.describe()
        + (f" (n = {summary.n:,})" if summary.n < max(most[one.values["data"]], one.answered / one.cells) else "")
        for one, summary in zip(settings, summaries, strict=True)
    ]


def _table(caption: str, settings: Sequence[SettingSummary], columns: Mapping[str, Sequence[str]]) -> Table:
    names = [one.label for one in settings]
    return Table(caption, ("setting", *columns), list(zip(names, *columns.values(), strict=True)))


def measured(results: Results) -> Section | None:
    """The table of measurements, if anything was measured."""
    settings = [one for one in results.settings if one.measured]
    if not settings:
        return None
    columns = {"measured": [f"{one.measured:,} of {one.answered:,}" for one in settings]}
    for name, digits in _MEASURED.items():
        known = [one.measurements.get(name) for one in settings]
        columns[name.replace("_", " ")] = [
            "–" if one is None else f"{one.median:,.{digits}f} ± {one.standard_deviation or 0.0:,.{digits}f}"
            for one in known
        ]
    caption = "Time, CPU and memory of an answer, median ± standard deviation over measured answers"
    cores = " or ".join(results.matrix.cores)
    note = (
        "Answers were made one at a time, by one call after another; those with stored replies are not measured. "
        f"cpu percent is of one core{cores and f'; usable cores: {cores}'}. "
        "Memory was sampled every 10 ms, so shorter peaks can be missed."
    )
    table = _table(caption, settings, columns)
    return Section("measured", "Time, CPU and memory", [table, Text(note, quiet=True)])


_MIN_QUESTIONS = 10


def slices(results: Results, metric: str) -> Section | None:
    """Effect of the order by question field, for fields whose values all have at least ten questions."""
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
        and min((one.difference.n for effects in found.values() for one in effects), default=0) >= _MIN_QUESTIONS
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


def differences(results: Results, metric: str) -> Section | None:
    """All pairs of settings that differ in only one axis, the lowest p first."""
    pairs = [pair for axis in results.axes if axis != "data" for pair in results.differences(axis, [metric])]
    differing = sorted((pair for pair in pairs if not pair.difference.tied), key=_lowest_p)
    parts: list[Part] = []
    if differing:
        head = ("difference", "in the setting", f"{metric} [95 % interval]", "questions", "p (corrected)")
        caption = "Differences between settings, lowest p first"
        parts.append(Table(caption, head, [_row(results, pair) for pair in differing], names=2))
    if tied := len(pairs) - len(differing):
        parts.append(Text(f"Not listed: {counted(tied, 'pair')} with equal scores on every question.", quiet=True))
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
