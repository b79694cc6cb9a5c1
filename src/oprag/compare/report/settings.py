"""All settings: scores, differences from the baseline, usage, and measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.summary import MANY, PROBLEMS, SettingSummary, ranked
from oprag.compare.analysis.wording import difference_text, listed, named
from oprag.compare.report.charts import usual_cost
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["measured", "section"]

_METRICS = 5  # columns of a table, to fit the width of a page
_MEASURED = {"seconds": 3, "cpu_seconds": 3, "cpu_percent": 0, "peak_memory_mib": 0}
"""The measurements, with their decimals."""
_USAGE = ("calls", "input_tokens", "output_tokens", "context_tokens")


def section(results: Results, metric: str | None, axis: str = "order") -> Section | None:
    """The tables of settings, each sorted by the main metric; the first one has the differences along the axis."""
    if not any(one.answered or one.failed for one in results.settings):
        return None
    settings = results.settings if metric is None else ranked(results.settings, metric)
    parts: list[Part] = [] if metric is None else [_main(results, settings, metric, axis)]
    if any(one.estimated for one in settings):
        counted = "~ counted by oprag, since the model did not report the tokens of all answers."
        parts.append(Text(counted, quiet=True))
    if any(one.doubtful for one in settings):
        parts.append(
            Text(
                f"! marks settings with this problem in more than {MANY:.0%} of the answers, so their scores are not "
                "reliable. If replies are cut short, increase max_tokens of the model."
            )
        )
    if any(one.cells > 1 for one in settings):
        parts.append(Text("The scores of each question are first averaged over seeds and repeats.", quiet=True))
    others = [name for name in results.metrics if name != metric]
    for start in range(0, len(others), _METRICS):
        some = others[start : start + _METRICS]
        columns = {name: _scores(settings, name) for name in some}
        parts.append(_table(results, f"{listed(some)}, with 95 % intervals", settings, columns))
    columns = {"answers": [f"{one.answered:,} of {one.asked:,}" for one in settings]}
    for name in _USAGE:
        if any(one.per_answer.get(name) for one in settings):
            columns[name.replace("_", " ")] = [one.cost_text(name) for one in settings]
    return Section("settings", "All settings", [*parts, _table(results, "Mean usage per answer", settings, columns)])


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
    return _table(results, f"{caption}; {listed([*costs]).replace('_', ' ')} are means per answer", settings, columns)


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


def _table(
    results: Results, caption: str, settings: Sequence[SettingSummary], columns: Mapping[str, Sequence[str]]
) -> Table:
    names = [results.label(one) for one in settings]
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
    table = _table(results, caption, settings, columns)
    return Section("measured", "Time, CPU and memory", [table, Text(note, quiet=True)])
