"""The results of an experiment on a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from oprag.cli.console import console
from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.settings import HasValues, varying_axes
from oprag.compare.analysis.summary import MANY, SettingSummary, faults, measured_how
from oprag.compare.analysis.verdicts import Verdict
from oprag.compare.analysis.wording import (
    amount,
    assignments,
    counted,
    difference_text,
    money_text,
    named,
    printable,
    spread,
)
from oprag.compare.metrics.registry import METRICS
from oprag.compare.results import Results
from oprag.compare.spec.axes import axes
from oprag.compare.stats.difference import FEW_UNITS
from oprag.masking import safe

__all__ = [
    "curve_as_json",
    "difference_as_json",
    "setting_as_json",
    "show_differences",
    "show_measured",
    "show_settings",
    "show_table",
    "show_verdicts",
]

_LONGEST = 24  # characters of a value
_AROUND = 3  # characters between two columns
_LEAST = 10  # differences that are printed of each metric, however many metrics there are
_TAKEN = {
    "calls": "calls",
    "input_tokens": "tokens\nin",
    "output_tokens": "tokens\nout",
    "context_tokens": "context\ntokens",
}
_NOT_COMPARED = ("paper_token_usage", "long_context_share")
"""Metrics of what was spent; more of it is not better."""


class _Column(NamedTuple):
    title: str
    cells: Sequence[str]
    right: bool = True

    @property
    def width(self) -> int:
        return max((len(line) for text in (self.title, *self.cells) for line in text.split("\n")), default=0)


def setting_as_json(setting: SettingSummary) -> dict[str, Any]:
    """What a setting scored and took, as values that JSON can hold."""
    plain = ("cells", "asked", "answered", "failed", "per_answer", "notes", "cores")
    return {
        "values": dict(setting.values),
        **{name: getattr(setting, name) for name in plain},
        "scores": {metric: asdict(summary) for metric, summary in setting.scores.items()},
        "phases": {phase: asdict(taken) for phase, taken in setting.phases.items()},
    }


def difference_as_json(pair: SettingDifference) -> dict[str, Any]:
    """A difference, as values that JSON can hold."""
    difference = pair.difference
    return {
        "metric": pair.metric,
        "axis": pair.axis,
        "setting": dict(pair.setting.values),
        "baseline": dict(pair.baseline.values),
        "difference": asdict(difference) | {"excludes_zero": difference.excludes_zero, "shown": difference.shown},
    }


def curve_as_json(curve: Curve) -> dict[str, Any]:
    """What is said of a curve, as values that JSON can hold."""
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
        "behind": [difference_as_json(one) for one in curve.behind],
        "conclusion": curve.describe(),
    }


def show_settings(results: Results, metric: str, pairs: Sequence[SettingDifference], *, most: int) -> None:
    """Print a line for each setting: its score, its difference from its baseline, and what an answer costs.

    Args:
        results: The results.
        metric: The metric.
        pairs: The differences in this metric along one axis.
        most: How many settings are printed.
    """
    shown = results.settings[:most]
    beside: dict[tuple[int, ...], list[SettingDifference]] = {}
    for pair in pairs:
        beside.setdefault(pair.setting.cells, []).append(pair)
    # A control that meets several baselines has no difference of its own.
    of_setting = [beside.get(setting.setting.cells, []) for setting in shown]
    ours = [found[0] if len(found) == 1 else None for found in of_setting]
    cost = results.usual_cost(metric)
    columns = [
        _Column(metric, [_mean(setting, metric) for setting in shown]),
        *([_Column("difference", [_difference(pair) for pair in ours], right=False)] if any(ours) else []),
        _Column("tokens", [amount(setting.cost(cost)) for setting in shown]),
    ]
    if any("money" in setting.per_answer for setting in results.settings):
        columns.append(_Column("money", [money_text(setting.cost("money")) for setting in shown]))
    names = [safe(named(setting.values, results.axes)) or "the only setting" for setting in shown]
    out = console()
    questions = sum(_most_questions(results.settings, metric).values())
    told = f"{metric} of {counted(questions, 'question')}"
    if any(ours):
        told += f"; differences from {pairs[0].axis}={printable(pairs[0].baseline_value)}"
    out.print(told, style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("setting", overflow="fold")
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for row in zip(names, *(column.cells for column in columns), strict=True):
        table.add_row(*row)
    out.print(table)
    for line in _notes(results, metric, [pair for pair in ours if pair is not None], cost):
        out.print(line)
    if len(results) > most:
        out.print(f"{len(results) - most:,} more settings; --json has all of them.")


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print verdicts, each in a line."""
    out = console()
    for verdict in verdicts:
        out.print(f"{verdict.question} {safe(verdict.describe())}")


def _notes(results: Results, metric: str, pairs: Sequence[SettingDifference], cost: str) -> Iterator[str]:
    """Notes on the table of settings."""
    if any(pair.difference.shown for pair in pairs):
        corrected = pairs[0].difference.comparisons
        yield f"* shown: the interval excludes 0 and p < 0.05, corrected for {corrected:,} comparisons"
    elif any(pair.difference.differing for pair in pairs):
        yield "No difference is shown (* would mark it), which does not show that there is none."
    if cost == "context_tokens":
        yield "Tokens are those of the context."
    most = _most_questions(results.settings, metric)
    scored = [setting for setting in results.settings if metric in setting.scores]
    summaries = [setting.scores[metric] for setting in scored]
    if fewer := [one.n for one, setting in zip(summaries, scored, strict=True) if one.n < most[setting.values["data"]]]:
        yield f"Some means are over fewer questions, down to {min(fewer):,}; differences are over those that both have."
    if any(setting.doubtful for setting in results.settings):
        yield f"! more than {MANY:.0%} of the answers are cut short or empty: the score says more about that."
    if any(one.low is not None and one.units < FEW_UNITS for one in summaries):
        yield f"An interval from fewer than {FEW_UNITS} questions, or documents, is too narrow."


def _mean(setting: SettingSummary, metric: str) -> str:
    if metric not in setting.scores:
        return "–"
    return f"{setting.scores[metric].mean or 0.0:.3f}{'!' if setting.doubtful else ''}"


def _difference(pair: SettingDifference | None) -> str:
    if pair is None or pair.difference.mean is None:
        return "–"
    if pair.difference.tied:
        return "none in any question"
    return f"{difference_text(pair.difference)}{' *' if pair.difference.shown else ''}"


def show_table(rows: Sequence[SettingSummary], *, most: int) -> None:
    """Print what each setting scored and took; as many tables as the width needs."""
    differ, same = varying_axes(rows)
    out = console()
    _print_same(out, same)
    shown = rows[:most]
    metrics = list(dict.fromkeys(name for row in shown for name in row.scores))
    questions = {name: _most_questions(rows, name) for name in metrics}
    scores = [
        _Column(name.replace("_", "\n"), [_score(row, name, of_data) for row in shown])
        for name, of_data in questions.items()
    ]
    _print_columns(out, _axes(differ, shown), scores)
    _print_columns(out, _axes(differ, shown), _taken(shown))
    if len(rows) > most:
        out.print(f"{len(rows) - most:,} more; --json has all of them.")
    if metrics:
        out.print("Means with 95 % intervals; calls and tokens are means of an answer, as if its cell were alone.")
    if any(row.cells > 1 for row in shown):
        out.print("The scores of a question are averaged over seeds and repeats first.")
    if any("n=" in cell for column in scores for cell in column.cells):
        out.print(
            "(n=…) is a mean over so many questions, where there are more answers, or others have more: it may differ "
            "for that alone. The differences below are over the questions that both have."
        )
    if any(row.doubtful for row in shown):
        out.print(f"! more than {MANY:.0%} of the answers: such scores say more about that than about the setting.")
    if any(score.low is not None and score.units < FEW_UNITS for row in shown for score in row.scores.values()):
        out.print(f"An interval from fewer than {FEW_UNITS} questions, or documents, is too narrow.")


def show_differences(pairs: Sequence[SettingDifference], rows: Sequence[SettingSummary], *, most: int) -> None:
    """Print how settings differ that differ in one axis alone."""
    differ = [name for name in varying_axes(rows)[0] if pairs and name != pairs[0].axis]
    out = console()
    compared = [pair for pair in pairs if pair.metric not in _NOT_COMPARED]
    metrics = list(dict.fromkeys(pair.metric for pair in compared))
    intervals = False
    for metric in metrics:
        family = [pair for pair in compared if pair.metric == metric]
        told = [pair for pair in family if not pair.difference.tied]
        if not told:
            written = metric not in METRICS or METRICS[metric].of == "answer"
            doubt = f" {faulty}: that may be why." if written and (faulty := _doubt(rows)) else ""
            out.print(f"{metric}: no difference between the values of {family[0].axis}.{doubt}")
            continue
        intervals = True
        comparisons = family[0].difference.comparisons
        corrected = f" (p corrected for {comparisons:,} comparisons)" if comparisons > 1 else ""
        baseline = printable(family[0].baseline_value)
        out.print(f"{metric}: {family[0].axis} against {baseline}{corrected}", style="bold")
        shown = told[: max(_LEAST, most // len(metrics))]
        for pair in shown:
            where = assignments({**pair.values, **pair.alone}, differ)
            against = assignments(pair.baseline_alone, differ)
            p = pair.difference.adjusted_p
            adjusted = "" if p is None else f"; p = {p:.2g}"
            out.print(
                f"  {printable(pair.value)}{where and f' ({where})'}{against and f' against {against}'}: "
                f"{pair.difference.describe()}{adjusted}"
            )
        if len(shown) < len(told):
            out.print(f"  {len(told) - len(shown):,} more; --json has all of them.")
        if len(told) < len(family):
            out.print(f"  {len(family) - len(told):,} without any difference.")
    if intervals:
        out.print(
            "Paired, question by question, with 95 % intervals; p by sign flips, corrected for all comparisons of the "
            "experiment in the metric, those of other axes included."
        )


def _faulty(rows: Sequence[SettingSummary]) -> Iterator[tuple[str, list[str]]]:
    """How many answers of each setting are cut short or empty, where any is."""
    for title, name in (("cut\nshort", "cut_short"), ("empty", "empty")):
        counts = [getattr(row, name) for row in rows]
        if any(counts):
            yield title, [_marked(count, row.answered) for row, count in zip(rows, counts, strict=True)]


def _doubt(rows: Sequence[SettingSummary]) -> str:
    """How many answers are empty or cut short, where they are many."""
    told = faults(rows) if any(row.doubtful for row in rows) else ""
    return told and f"{told[0].upper()}{told[1:]}"


def _marked(count: int, answered: int) -> str:
    return f"{count:,}{'!' if count > MANY * answered else ''}"


def show_measured(rows: Sequence[SettingSummary], *, most: int) -> None:
    """Print what the phases of each setting took."""
    rows = [row for row in rows if row.phases]
    if not rows:
        return
    differ, same = varying_axes(rows)
    out = console()
    _print_same(out, same)
    phases = [(row, phase, taken) for row in rows[:most] for phase, taken in row.phases.items()]
    fixed = [
        *_axes(differ, [row for row, _, _ in phases]),
        _Column("phase", [phase for _, phase, _ in phases], right=False),
    ]
    columns = {
        "seconds\nmedian ± sd": [
            spread(taken.seconds.median, taken.seconds.standard_deviation, 3) for _, _, taken in phases
        ],
        "CPU %": [f"{taken.cpu_percent:.0f}" for _, _, taken in phases],
        "peak\nMB": [f"{taken.peak_memory_bytes / 1e6:,.0f}" for _, _, taken in phases],
        "growth\nMB": [f"{taken.memory_growth_bytes / 1e6:,.0f}" for _, _, taken in phases],
    }
    _print_columns(out, fixed, [_Column(title, cells) for title, cells in columns.items()])
    if len(rows) > most:
        out.print(f"{len(rows) - most:,} more; --json has all of them.")
    out.print(safe(measured_how(rows)))


def _print_same(out: Console, same: Mapping[str, Any]) -> None:
    """Say once what is the same in all rows, where it is not the default."""
    told = [name for name, value in same.items() if value != axes()[name].default or name in ("method", "data")]
    out.print(f"In all rows: {assignments(same, told)}")


def _axes(differ: Sequence[str], rows: Sequence[HasValues]) -> list[_Column]:
    cells = {name: [printable(row.values[name]) if name in row.values else "–" for row in rows] for name in differ}
    return [_Column(name.replace("_", "\n"), cells[name], right=False) for name in differ]


def _taken(rows: Sequence[SettingSummary]) -> list[_Column]:
    """How many answers there are, and what they took."""
    names = [name for name in _TAKEN if any(row.per_answer.get(name) for row in rows)]
    return [
        _Column("answers", [_of(row.answered, row.asked) for row in rows]),
        _Column("failed", [f"{row.failed:,}" for row in rows]),
        *(_Column(title, cells) for title, cells in _faulty(rows)),
        *(_Column(_TAKEN[name], [amount(row.per_answer.get(name)) for row in rows]) for name in names),
    ]


def _print_columns(out: Console, fixed: Sequence[_Column], columns: Sequence[_Column]) -> None:
    """Print as many tables as the width needs, each with the fixed columns."""
    left = out.width - 2 - sum(min(_LONGEST, column.width) + _AROUND for column in fixed)
    part: list[_Column] = []
    for column in columns:
        if part and sum(one.width + _AROUND for one in (*part, column)) - _AROUND > left:
            _print_table(out, fixed, part)
            part = []
        part.append(column)
    if part:
        _print_table(out, fixed, part)


def _print_table(out: Console, fixed: Sequence[_Column], columns: Sequence[_Column]) -> None:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in fixed:
        table.add_column(column.title, overflow="fold", max_width=_LONGEST)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for row in zip(*(column.cells for column in (*fixed, *columns)), strict=True):
        table.add_row(*row)
    out.print(table)


def _most_questions(rows: Sequence[SettingSummary], metric: str) -> dict[str, int]:
    """The largest number of questions of each data set that have a score in one setting."""
    most: dict[str, int] = {}
    for row in rows:
        if metric in row.scores:
            data = row.values["data"]
            most[data] = max(most.get(data, 0), row.scores[metric].n)
    return most


def _score(row: SettingSummary, metric: str, questions: Mapping[str, int]) -> str:
    """The mean, and its interval below it; with the number of questions where it is not that of all of its data."""
    summary = row.scores.get(metric)
    if summary is None or summary.mean is None:
        return "–"
    mean = f"{summary.mean:.3f}"
    if row.answered < row.asked or summary.n < questions[row.values["data"]] or row.lacks(metric):
        mean = f"(n={summary.n:,}) {mean}"
    return mean if summary.low is None or summary.high is None else f"{mean}\n[{summary.low:.3f}, {summary.high:.3f}]"


def _of(count: int, all_of: int) -> str:
    return f"{count:,}" if count == all_of else f"{count:,}/{all_of:,}"
