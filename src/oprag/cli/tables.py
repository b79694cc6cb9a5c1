"""Prints the results of an experiment as tables, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from rich.table import Table as RichTable

from oprag._internal.text_table import safe
from oprag.cli.console import console, echo_json, print_status
from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.plan import Plan
from oprag.compare.report import tables
from oprag.compare.report.page import Part, Table, Text
from oprag.compare.results import Results
from oprag.compare.running.run import RunReport

__all__ = ["plan_as_json", "print_json", "print_tables"]

_MAX_ROWS = 10  # of the table of settings
_GAP = 2  # characters between two columns
_NAME_WIDTH = 20  # characters of a name column before it is folded to make room for other columns


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """Convert a plan to JSON values."""
    return asdict(plan) | {"limits": plan.limits.model_dump(), "calls": plan.calls, "money": plan.money}


def print_json(plan: Plan, report: RunReport, results: Results, axis: str) -> None:
    """Print everything about a run and its results as JSON, with the differences along an axis."""
    with ResultsReader.open(results.path, results.experiment) as reader:
        failures = reader.failures()
    echo_json(
        {
            "experiment": results.experiment,
            "results": str(results.path),
            "plan": plan_as_json(plan),
            "report": asdict(report),
            "cores": list(results.matrix.cores),
            "settings": [_setting_as_json(setting) for setting in results.settings],
            "differences": [_difference_as_json(pair) for pair in results.differences(axis)],
            "failures": [failure._asdict() for failure in failures],
        }
    )


def _setting_as_json(setting: SettingSummary) -> dict[str, Any]:
    plain = ("cells", "asked", "answered", "failed", "per_answer", "notes")
    return {
        "values": dict(setting.values),
        **{name: getattr(setting, name) for name in plain},
        "scores": {metric: asdict(summary) for metric, summary in setting.scores.items()},
        "measurements": {name: asdict(summary) for name, summary in setting.measurements.items()},
    }


def _difference_as_json(pair: SettingDifference) -> dict[str, Any]:
    difference = pair.difference
    return {
        "metric": pair.metric,
        "axis": pair.axis,
        "setting": dict(pair.setting.values),
        "baseline": dict(pair.baseline.values),
        "difference": asdict(difference)
        | {"excludes_zero": difference.excludes_zero, "significant": difference.significant},
    }


def print_tables(results: Results, metric: str | None, axis: str, *, everything: bool, measured: bool) -> None:
    """Print the first tables of the report and the verdicts; without a metric, no setting is ranked."""
    out = console()
    rest: Sequence[Part] = ()
    if metric is None:
        print_status("No metric with scores can rank the settings, so nothing is compared.")
    if (section := tables.all_settings(results, metric, axis)) is not None:
        places = [place for place, part in enumerate(section.parts) if isinstance(part, Table)]
        first = len(section.parts) if metric is None else places[1]
        _print_parts(section.parts[:first], everything=everything)
        rest = section.parts[first:] if everything else ()
    if metric in results.metrics:
        for verdict in results.verdicts(metric):
            out.print(f"{verdict.question} {safe(verdict.describe())}")
    if rest:
        out.print()
    _print_parts(rest, everything=True)
    more = [tables.differences(results, metric)] if everything and metric is not None else []
    more += [tables.measured(results)] if everything or measured else []
    for one in more:
        if one is not None:
            out.print(f"\n── {one.title}", style="bold")
            _print_parts(one.parts, everything=True)
    if not everything:
        print_status("--all prints all settings, metrics, differences and measurements; --json prints everything.")


def _print_parts(parts: Sequence[Part], *, everything: bool) -> None:
    """Print the tables and texts of a section of the report."""
    for place, part in enumerate(parts):
        if isinstance(part, Table):
            if place:
                console().print()
            _print_table(part, part.max_rows if everything else _MAX_ROWS)
        elif isinstance(part, Text) and (everything or not part.quiet):
            console().print(safe(part.text))


def _print_table(table: Table, max_rows: int) -> None:
    """Print a table; one too wide is printed as several, each repeating the name columns."""
    out = console()
    out.print(safe(table.caption), style="bold")
    rows = table.rows[:max_rows]
    # Titles are wrapped between words and names anywhere; other cells are never wrapped.
    widths = [
        max(map(len, [*title.split(), *(row[number] for row in rows)])) for number, title in enumerate(table.head)
    ]
    names = range(table.names)
    left = out.width - sum(min(widths[number], _NAME_WIDTH) + _GAP for number in names)
    room, parts = left, [list(names)]
    for number in range(table.names, len(table.head)):
        if room < widths[number] and len(parts[-1]) > table.names:
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
    if len(table.rows) > max_rows:
        out.print(f"{len(table.rows) - max_rows:,} more; --all prints all of them.")
