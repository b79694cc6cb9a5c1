"""All settings: scores, differences from the baseline, usage, and measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oprag.compare.analysis.best import best_of
from oprag.compare.analysis.differences import SettingDifference, single_baselines
from oprag.compare.analysis.settings import by_data
from oprag.compare.analysis.summary import COUNTED, MANY, PROBLEMS, SettingSummary, ranked
from oprag.compare.analysis.wording import difference_text, interval, listed, named, share, spread
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["measured", "section"]

_MAX_ROWS, _MAX_DATA_SETS = 1_000, 4
_METRICS = 5  # columns of a table, to fit the width of a page
_MEASURED = {"seconds": 3, "cpu_seconds": 3, "cpu_percent": 0, "peak_memory_mib": 0}
"""The measurements, with their decimals."""
_USAGE = ("calls", "input_tokens", "output_tokens", "context_tokens")


def section(results: Results, metric: str | None, axis: str = "order") -> Section | None:
    """The tables of settings, each sorted by the main metric; the first one has the differences along the axis."""
    if not any(one.answered or one.failed for one in results.settings):
        return None
    if metric is None:
        parts: list[Part] = [*_others(results, results.settings, results.metrics)]
        return Section("settings", "All settings", [*parts, _usage(results, results.settings)])
    settings = ranked(results.settings, metric)
    others = [name for name in results.metrics if name != metric]
    parts = [_main(results, settings, metric, axis), *_notes(results, metric), *_others(results, settings, others)]
    return Section("settings", "All settings", [*parts, _usage(results, settings)])


def _main(results: Results, settings: Sequence[SettingSummary], metric: str, first_axis: str) -> Table:
    axis, baselines = _baselines(results, metric, first_axis)
    cost = results.usual_cost(metric)
    columns: dict[str, list[str]] = {metric: _scores(settings, metric)}
    if baselines:
        first = next(iter(baselines.values())).baseline
        columns[f"minus {named(first.values, [axis])}"] = [_difference(baselines.get(one.number)) for one in settings]
    columns[cost.replace("_", " ")] = [one.cost_text(cost) for one in settings]
    if any(one.cost("money") is not None for one in settings):
        columns["money"] = [one.cost_text("money") for one in settings]
    for name, title in PROBLEMS.items():
        if any(counts := [getattr(one, name) for one in settings]):
            columns[title] = [
                f"{count:,}{' !' if count > MANY * one.answered else ''}"
                for one, count in zip(settings, counts, strict=True)
            ]
    caption = f"{metric} with 95 % interval, highest first"
    if baselines:
        caption += f"; the difference is from the setting that differs only in {axis}, * if significant"
    caption += f"; tokens{' and money' if 'money' in columns else ''} are means per answer"
    return _table(results, caption, settings, columns)


def _baselines(results: Results, metric: str, first_axis: str) -> tuple[str, Mapping[int, SettingDifference]]:
    """An axis, `first_axis` if possible, and the difference of each setting that has exactly one baseline along it."""
    for axis in sorted((name for name in results.axes if name != "data"), key=lambda name: name != first_axis):
        if single := single_baselines(results.differences(axis, [metric])):
            return axis, single
    return "", {}


def _difference(one: SettingDifference | None) -> str:
    if one is None:
        return "–"
    return "equal" if one.difference.tied else difference_text(one.difference)


def _others(results: Results, settings: Sequence[SettingSummary], names: Sequence[str]) -> Iterator[Table]:
    for start in range(0, len(names), _METRICS):
        some = names[start : start + _METRICS]
        columns = {name: _scores(settings, name) for name in some}
        yield _table(results, f"{listed(some)}, with 95 % intervals", settings, columns)


def _usage(results: Results, settings: Sequence[SettingSummary]) -> Table:
    columns = {"answers": [f"{one.answered:,} of {one.asked:,}" for one in settings]}
    for name in _USAGE:
        if any(one.per_answer.get(name) for one in settings):
            columns[name.replace("_", " ")] = [one.cost_text(name) for one in settings]
    if any(one.routes for one in settings):
        columns["answered in the first step"] = [
            share(one.routes.get("rag", 0) / sum(one.routes.values()) if one.routes else None) for one in settings
        ]
    return _table(results, "Mean usage per answer", settings, columns)


def _table(
    results: Results, caption: str, settings: Sequence[SettingSummary], columns: Mapping[str, Sequence[str]]
) -> Table:
    names = [results.label(one) for one in settings]
    return Table(caption, ("setting", *columns), list(zip(names, *columns.values(), strict=True)), max_rows=_MAX_ROWS)


def _scores(settings: Sequence[SettingSummary], metric: str) -> list[str]:
    """Means with intervals, and the number of questions if other settings have more."""
    found: list[str] = []
    highest_n: dict[Any, int] = {}
    for one in settings:
        if (summary := one.scores.get(metric)) is not None:
            highest_n[one.values["data"]] = max(highest_n.get(one.values["data"], 0), summary.n)
    for one in settings:
        summary = one.scores.get(metric)
        fewer = summary is not None and (summary.n < highest_n[one.values["data"]] or one.lacks(metric))
        found.append(f"{interval(summary)} (n = {summary.n:,})" if summary is not None and fewer else interval(summary))
    return found


def _notes(results: Results, metric: str) -> Iterator[Part]:
    sets = by_data([one for one in results.settings if metric in one.scores])
    for data, settings in list(sets.items())[:_MAX_DATA_SETS]:
        if len(settings) > 1:
            best = best_of(settings, metric)
            yield Text(f"{f'{data}: ' if len(sets) > 1 else ''}{best.describe()}.", quiet=True)
    if any(one.estimated for one in results.settings):
        yield Text(COUNTED)
    if any(one.doubtful for one in results.settings):
        yield Text(
            f"! marks settings with this problem in more than {MANY:.0%} of the answers, so their scores are not "
            "reliable. If replies are cut short, increase max_tokens of the model.",
        )
    if any(one.cells > 1 for one in results.settings):
        yield Text("The scores of each question are first averaged over seeds and repeats.", quiet=True)


def measured(results: Results, _: str | None = None) -> Section | None:
    """The table of measurements, if anything was measured."""
    settings = [one for one in results.settings if one.measured]
    if not settings:
        return None
    rows = [
        (
            results.label(one),
            f"{one.measured:,} of {one.answered:,}",
            *(_spread(one, name, digits) for name, digits in _MEASURED.items()),
        )
        for one in settings
    ]
    table = Table(
        "Time, CPU and memory of an answer, median ± standard deviation over measured answers",
        ("setting", "measured", "seconds", "CPU seconds", "CPU %", "peak MiB"),
        rows,
        max_rows=_MAX_ROWS,
    )
    cores = " or ".join(results.matrix.cores)
    note = (
        "Answers were made one at a time, by one call after another; those with stored replies are not measured. "
        f"CPU % is of one core{cores and f'; usable cores: {cores}'}. "
        "Memory was sampled every 10 ms, so shorter peaks can be missed."
    )
    return Section("measured", "Time, CPU and memory", [table, Text(note, quiet=True)])


def _spread(setting: SettingSummary, name: str, digits: int) -> str:
    summary = setting.measurements.get(name)
    return "–" if summary is None else spread(summary.median, summary.standard_deviation, digits)
