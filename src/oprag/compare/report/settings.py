"""All settings: what each scored, how it differs from its baseline, what it took, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oprag.compare.analysis.best import best_of
from oprag.compare.analysis.differences import SettingDifference, single_baselines
from oprag.compare.analysis.settings import by_data
from oprag.compare.analysis.summary import MANY, measured_how
from oprag.compare.analysis.wording import (
    amount,
    difference_text,
    interval,
    listed,
    money_text,
    name_of,
    share,
    spread,
    value_text,
)
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["measured", "section"]

_MOST, _MOST_PHASES, _MOST_SETS = 400, 200, 4
_METRICS = 5  # columns of a table: so many are no wider than a page
_NOTES = {"failed": "failed", "left": "not tried", "cut_short": "cut short", "empty": "empty"}
_TAKEN = {
    "calls": "calls",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "context_tokens": "context tokens",
}


def section(results: Results, metric: str | None) -> Section | None:
    """The tables of settings."""
    if not any(one.answered or one.failed for one in results.settings):
        return None
    parts = [*_main(results, metric), *_notes(results, metric), *_others(results, metric), _taken(results)]
    return Section("settings", "All settings", parts)


def _main(results: Results, metric: str | None) -> Iterator[Part]:
    if metric is None:
        return
    settings = results.settings
    axis, baselines = _baselines(results, metric)
    cost = results.usual_cost(metric)
    columns: dict[str, list[str]] = {metric: _scores(results, metric)}
    if baselines:
        columns["difference"] = [_difference(baselines.get(one.number)) for one in settings]
    columns[cost.replace("_", " ")] = [amount(one.cost(cost)) for one in settings]
    if any(one.cost("money") is not None for one in settings):
        columns["money"] = [money_text(one.cost("money")) for one in settings]
    for name, title in _NOTES.items():
        if any(counts := [getattr(one, name) for one in settings]):
            columns[title] = [
                f"{count:,}{' !' if count > MANY * one.answered else ''}"
                for one, count in zip(settings, counts, strict=True)
            ]
    caption = f"{metric} with its 95 % interval"
    if baselines:
        first = next(iter(baselines.values())).baseline_value
        caption += f"; the difference is from the same setting with {axis} {value_text(first)}, * where it is shown"
    caption += f"; tokens{' and money' if 'money' in columns else ''} are means of an answer"
    yield _table(results, caption, columns, _highest(results, metric))


def _baselines(results: Results, metric: str) -> tuple[str, Mapping[int, SettingDifference]]:
    """An axis, and the difference of each setting, by its number, that has one baseline alone along it."""
    for axis in sorted((name for name in results.axes if name != "data"), key=lambda name: name != "order"):
        if single := single_baselines(results.differences(axis, [metric])):
            return axis, single
    return "", {}


def _difference(one: SettingDifference | None) -> str:
    if one is None:
        return "–"
    if one.difference.tied:
        return "the same"
    return difference_text(one.difference)


def _others(results: Results, metric: str | None) -> Iterator[Part]:
    names = [name for name in results.metrics if name != metric]
    for start in range(0, len(names), _METRICS):
        some = names[start : start + _METRICS]
        yield _table(results, f"{listed(some)}, with 95 % intervals", {name: _scores(results, name) for name in some})


def _taken(results: Results) -> Part:
    settings = results.settings
    columns = {"answers": [f"{one.answered:,} of {one.asked:,}" for one in settings]}
    for name, title in _TAKEN.items():
        if any(one.per_answer.get(name) for one in settings):
            columns[title] = [amount(one.per_answer.get(name)) for one in settings]
    if any(one.routes for one in settings):
        columns["answered at the first step"] = [
            share(one.routes.get("rag", 0) / sum(one.routes.values()) if one.routes else None) for one in settings
        ]
    return _table(results, "Mean use per answer", columns)


def _table(results: Results, caption: str, columns: Mapping[str, Sequence[str]], marked: Sequence[int] = ()) -> Table:
    names = [name_of(one.values, results.axes) for one in results.settings]
    rows = list(zip(names, *columns.values(), strict=True))
    return Table(caption, ("setting", *columns), rows, marked=marked, most=_MOST)


def _scores(results: Results, metric: str) -> list[str]:
    """Means with their intervals, and over how many questions they are where others have more."""
    found: list[str] = []
    most: dict[Any, int] = {}
    for one in results.settings:
        if (summary := one.scores.get(metric)) is not None:
            most[one.values["data"]] = max(most.get(one.values["data"], 0), summary.n)
    for one in results.settings:
        summary = one.scores.get(metric)
        fewer = summary is not None and (summary.n < most[one.values["data"]] or one.lacks(metric))
        found.append(f"{interval(summary)} (n = {summary.n:,})" if summary is not None and fewer else interval(summary))
    return found


def _highest(results: Results, metric: str) -> list[int]:
    """The setting of each data set with the highest mean, where there are several."""
    found: list[int] = []
    for settings in by_data(results.settings).values():
        means = {one.number: one.scores[metric].mean or 0.0 for one in settings if metric in one.scores}
        if len(means) > 1:
            found.append(max(means, key=lambda number: means[number]))
    return found


def _notes(results: Results, metric: str | None) -> Iterator[Part]:
    sets = {} if metric is None else by_data([one for one in results.settings if metric in one.scores])
    for data, settings in list(sets.items())[:_MOST_SETS]:
        if metric is not None and len(settings) > 1:
            best = best_of(settings, metric, axes=results.axes, family=results.family(metric))
            yield Text(f"{f'{data}: ' if len(sets) > 1 else ''}{best.describe()}.", quiet=True)
    if any(one.doubtful for one in results.settings):
        yield Text(
            f"! marks more than {MANY:.0%} of the answers of a setting, so its scores say more about them than about "
            "the setting. Where replies are cut short, a higher max_tokens of the model helps.",
        )
    if any(one.cells > 1 for one in results.settings):
        yield Text("The scores of a question are averaged over seeds and repeats first.", quiet=True)


def measured(results: Results, _: str | None = None) -> Section | None:
    """The table of phases, where something was measured."""
    there = [one for one in results.settings if one.phases]
    rows = [
        (
            name_of(one.values, results.axes),
            phase,
            spread(taken.seconds.median, taken.seconds.standard_deviation, 3),
            f"{taken.cpu_percent:.0f}",
            f"{taken.peak_memory_bytes / 1e6:,.0f}",
            f"{taken.memory_growth_bytes / 1e6:,.0f}",
        )
        for one in there
        for phase, taken in one.phases.items()
    ]
    if not rows:
        return None
    table = Table(
        "Time, processor and memory of each phase, over questions",
        ("setting", "phase", "seconds, median ± standard deviation", "CPU %", "peak MB", "growth MB"),
        rows,
        names=2,
        most=_MOST_PHASES,
    )
    told = f"Cells were measured one at a time, each in a fresh process without caches. {measured_how(there)}"
    return Section("measured", "Time, processor and memory", [table, Text(told, quiet=True)])
