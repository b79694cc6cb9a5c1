"""Prints the results of an experiment as tables, and converts them to JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from rich.table import Table as RichTable

from oprag.cli.console import console
from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.differences import SettingDifference, single_baselines
from oprag.compare.analysis.summary import COUNTED, MANY, SettingSummary, ranked
from oprag.compare.analysis.verdicts import Verdict
from oprag.compare.analysis.wording import counted, difference_text, named
from oprag.compare.report.page import Section, Table, Text
from oprag.compare.results import Results
from oprag.compare.stats.difference import FEW_UNITS
from oprag.masking import safe

__all__ = [
    "curve_as_json",
    "difference_as_json",
    "setting_as_json",
    "show_section",
    "show_settings",
    "show_verdicts",
]

_MAX_ROWS = 10  # of the table of settings
_GAP = 2  # characters between two columns
_NAME_WIDTH = 28  # characters of a name column before it is folded to make room for other columns


def setting_as_json(setting: SettingSummary) -> dict[str, Any]:
    """Convert the summary of a setting to JSON values."""
    plain = ("cells", "asked", "answered", "failed", "per_answer", "notes")
    return {
        "values": dict(setting.values),
        **{name: getattr(setting, name) for name in plain},
        "scores": {metric: asdict(summary) for metric, summary in setting.scores.items()},
        "measurements": {name: asdict(summary) for name, summary in setting.measurements.items()},
    }


def difference_as_json(pair: SettingDifference) -> dict[str, Any]:
    """Convert a difference between two settings to JSON values."""
    difference = pair.difference
    return {
        "metric": pair.metric,
        "axis": pair.axis,
        "setting": dict(pair.setting.values),
        "baseline": dict(pair.baseline.values),
        "difference": asdict(difference)
        | {"excludes_zero": difference.excludes_zero, "significant": difference.significant},
    }


def curve_as_json(curve: Curve) -> dict[str, Any]:
    """Convert a curve and its conclusion to JSON values."""
    plain = ("axis", "metric", "values", "comparisons", "unscored", "exhausted")
    return {
        **{name: getattr(curve, name) for name in plain},
        "points": [
            {"value": point.value, "summary": asdict(point.summary), "context_tokens": point.context_tokens}
            for point in curve.points
        ],
        "sweet_spot": curve.sweet_spot and curve.sweet_spot.value,
        "contenders": [point.value for point in curve.contenders],
        "highest": curve.highest.value,
        "others": [difference_as_json(one) for one in curve.others],
        "conclusion": curve.describe(),
    }


def show_settings(
    results: Results, metric: str, pairs: Sequence[SettingDifference], *, everything: bool = False
) -> None:
    """Print a row for each setting, the highest score first: its score, its difference from the baseline, and its cost.

    Args:
        results: The settings.
        metric: The main metric.
        pairs: Differences along an axis.
        everything: Whether to print all rows instead of the first ten.
    """
    settings = ranked(results.settings, metric)
    baselines = single_baselines(pairs)
    cost = results.usual_cost(metric)
    columns = {"setting": [results.label(one) for one in settings]}
    columns[metric] = [_mean(setting, metric) for setting in settings]
    if baselines:
        columns[f"minus {named(pairs[0].baseline.values, [pairs[0].axis or ''])}"] = [
            _difference(baselines.get(setting.number)) for setting in settings
        ]
    columns[cost.replace("_", " ")] = [setting.cost_text(cost) for setting in settings]
    if any("money" in setting.per_answer for setting in settings):
        columns["money"] = [setting.cost_text("money") for setting in settings]
    caption = f"{metric} of {counted(sum(_max_questions(settings, metric).values()), 'question')}"
    rows = list(zip(*columns.values(), strict=True))
    _print_table(
        Table(caption, list(columns), rows, max_rows=len(rows) if everything else _MAX_ROWS), split=False, more="--all"
    )
    for line in _notes(results, metric, list(baselines.values())):
        console().print(line)


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print one line for each verdict."""
    out = console()
    for verdict in verdicts:
        out.print(f"{verdict.question} {safe(verdict.describe())}")


def show_section(section: Section | None) -> None:
    """Print the texts and tables of a section of the report."""
    if section is None:
        return
    console().print(f"\n── {section.title}", style="bold")
    for part in section.parts:
        if isinstance(part, Table):
            console().print()
            _print_table(part)
        elif isinstance(part, Text):
            console().print(safe(part.text))


def _print_table(table: Table, *, split: bool = True, more: str = "--json") -> None:
    """Print a table; with `split`, one too wide is printed as several, each repeating the name columns.

    `more` is the option that prints all rows.
    """
    out = console()
    out.print(safe(table.caption), style="bold")
    rows = table.rows[: table.max_rows]
    # Titles are wrapped between words and names anywhere; other cells are never wrapped.
    widths = [
        max(map(len, [*title.split(), *(row[number] for row in rows)])) for number, title in enumerate(table.head)
    ]
    names = range(table.names)
    left = out.width - sum(min(widths[number], _NAME_WIDTH) + _GAP for number in names)
    room, parts = left, [list(names)]
    for number in range(table.names, len(table.head)):
        if split and room < widths[number] and len(parts[-1]) > table.names:
            room, parts = left, [*parts, list(names)]
        parts[-1].append(number)
        room -= widths[number] + _GAP
    for part in parts:
        printed = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for number in part:
            title = table.head[number]
            # Align differences left: some end with a star.
            left_aligned = number in names or table.words or title.startswith("minus ")
            printed.add_column(
                "\n".join(wrap(title, widths[number])),
                justify="left" if left_aligned else "right",
                no_wrap=number not in names,
                overflow="fold",
            )
        for row in rows:
            printed.add_row(*(safe(row[number]) for number in part))
        out.print(printed)
    if table.more:
        out.print(f"{table.more:,} more; {more} prints all of them.")


def _notes(results: Results, metric: str, pairs: Sequence[SettingDifference]) -> Iterator[str]:
    """Yield notes on the table of settings."""
    if any(pair.difference.significant for pair in pairs):
        corrected = pairs[0].difference.comparisons
        yield "* significant: the interval excludes 0 and p < 0.05"
        if corrected > 1:
            yield f"p is corrected for {corrected:,} comparisons; settings with equal scores count once."
    elif any(pair.difference.differing for pair in pairs):
        yield "No significant difference (none is marked *); this does not prove that the settings are equal."
    if any(setting.estimated for setting in results.settings):
        yield COUNTED
    max_questions = _max_questions(results.settings, metric)
    scored = [setting for setting in results.settings if metric in setting.scores]
    summaries = [setting.scores[metric] for setting in scored]
    if fewer := [
        one.n for one, setting in zip(summaries, scored, strict=True) if one.n < max_questions[setting.values["data"]]
    ]:
        yield f"Some means cover fewer questions, down to {min(fewer):,}; differences cover questions scored in both."
    if any(setting.doubtful for setting in results.settings):
        yield f"! more than {MANY:.0%} of the answers are cut short or empty; the score mostly reflects that."
    if any(one.low is not None and one.units < FEW_UNITS for one in summaries):
        yield f"Intervals from fewer than {FEW_UNITS} questions (or documents) are too narrow."


def _mean(setting: SettingSummary, metric: str) -> str:
    if metric not in setting.scores:
        return "–"
    return f"{setting.scores[metric].mean or 0.0:.3f}{'!' if setting.doubtful else ''}"


def _difference(pair: SettingDifference | None) -> str:
    if pair is None or pair.difference.mean is None:
        return "–"
    if pair.difference.tied:
        return "tied on every question"
    return difference_text(pair.difference)


def _max_questions(rows: Sequence[SettingSummary], metric: str) -> dict[str, int]:
    """Return, for each data set, the largest number of questions that any one setting has scores for."""
    largest: dict[str, int] = {}
    for row in rows:
        if metric in row.scores:
            data = row.values["data"]
            largest[data] = max(largest.get(data, 0), row.scores[metric].n)
    return largest
