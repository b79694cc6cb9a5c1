"""The tables of an experiment on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from oprag.cli.show import console, safe
from oprag.compare.measurements import MeasuredSetting
from oprag.compare.pairs import CellDifference
from oprag.compare.setting import varying_axes
from oprag.compare.statistics import Summary
from oprag.compare.table import CellSummary

__all__ = ["show_differences", "show_measured", "show_table"]

_SCORE = 16  # characters of a column with a score and its interval, and what stands around it
_LONGEST = 24  # characters of a value
_TAKEN = {
    "calls": "calls",
    "input_tokens": "tokens\nin",
    "output_tokens": "tokens\nout",
    "context_tokens": "context\ntokens",
}
_NOT_COMPARED = ("paper_token_usage", "long_context_share")
"""Metrics of what was spent; more of it is not better."""


def show_table(rows: Sequence[CellSummary], *, most: int) -> None:
    """Print what each setting scored and took; as many tables as the width needs.

    Args:
        rows: The settings.
        most: The most of them to print.
    """
    differ, same = varying_axes(rows)
    out = console()
    _print_same(out, differ, same)
    shown = rows[:most]
    metrics = list(dict.fromkeys(name for row in shown for name in row.scores))
    for names in _by_width(metrics, out.width - _width(differ, shown)):
        table = _table(differ)
        for name in names:
            table.add_column(name.replace("_", "\n"), justify="right", no_wrap=True)
        for row in shown:
            table.add_row(*_values(row.values, differ), *(_score(row.scores.get(name)) for name in names))
        out.print(table)
    out.print(_taken(shown, differ))
    if len(rows) > most:
        out.print(f"{len(rows) - most:,} more; --json has all of them.")
    if metrics:
        out.print("Means with 95 % intervals; calls and tokens are means of an answer, as if its cell were alone.")
    if any(row.cells > 1 for row in shown):
        out.print("The scores of a question are averaged over seeds and repeats first.")


def show_differences(pairs: Sequence[CellDifference], rows: Sequence[CellSummary], *, most: int) -> None:
    """Print how settings differ that differ in one axis alone.

    Args:
        pairs: The differences.
        rows: The settings, for the axes in which they differ.
        most: The most of them to print.
    """
    differ = [name for name in varying_axes(rows)[0] if pairs and name != pairs[0].axis]
    out = console()
    compared = [pair for pair in pairs if pair.metric not in _NOT_COMPARED]
    shown = 0
    for metric in dict.fromkeys(pair.metric for pair in compared):
        family = [pair for pair in compared if pair.metric == metric]
        axis = family[0].axis
        if all(pair.difference.mean == pair.difference.low == pair.difference.high == 0 for pair in family):
            out.print(f"{metric}: no difference between the values of {axis}.")
            continue
        out.print(f"{metric}: {axis} against {safe(_value(family[0].baseline))}", style="bold")
        for pair in family[: most - shown]:
            where = ", ".join(f"{name}={safe(_value(pair.values[name]))}" for name in differ if name in pair.values)
            adjusted = "" if pair.adjusted_p is None else f"; p = {pair.adjusted_p:.2g}"
            out.print(
                f"  {safe(_value(pair.value))}{f' ({where})' if where else ''}: {pair.difference.describe()}{adjusted}"
            )
        shown = min(most, shown + len(family))
        if shown == most:
            out.print("  and more; --json has all of them.")
            break
    if shown:
        out.print(
            "Paired, question by question, with 95 % intervals; p by sign flips, with Holm's correction in each metric."
        )


def show_measured(rows: Sequence[MeasuredSetting], *, most: int) -> None:
    """Print what the phases of each setting took.

    Args:
        rows: The settings.
        most: The most of them to print.
    """
    differ, same = varying_axes(rows)
    out = console()
    _print_same(out, differ, same)
    table = _table(differ)
    table.add_column("phase")
    for title in ("seconds\nmedian ± sd", "CPU %", "peak\nMB", "growth\nMB"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows[:most]:
        for phase, taken in row.phases.items():
            spread = taken.seconds.standard_deviation
            table.add_row(
                *_values(row.values, differ),
                phase,
                f"{taken.seconds.median:.3f}" + ("" if spread is None else f" ± {spread:.3f}"),
                f"{taken.cpu_percent:.0f}",
                f"{taken.peak_memory_bytes / 1e6:,.0f}",
                f"{taken.memory_growth_bytes / 1e6:,.0f}",
            )
    out.print(table)
    if len(rows) > most:
        out.print(f"{len(rows) - most:,} more; --json has all of them.")


def _print_same(out: Console, differ: Sequence[str], same: Mapping[str, Any]) -> None:
    """Say once what is the same in all rows, where it is not the default."""
    from oprag.compare.axes import axes

    told = [
        f"{name}={safe(_value(value))}"
        for name, value in same.items()
        if name not in differ and (value != axes()[name].default or name in ("method", "data"))
    ]
    out.print(f"In all rows: {', '.join(told)}")


def _table(differ: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in differ:
        table.add_column(name.replace("_", "\n"), overflow="fold", max_width=_LONGEST)
    return table


def _taken(rows: Sequence[CellSummary], differ: Sequence[str]) -> Table:
    """How many answers there are, and what they took."""
    names = [name for name in _TAKEN if any(row.per_answer.get(name) for row in rows)]
    table = _table(differ)
    for title in ("answers", "failed", *(_TAKEN[name] for name in names)):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        answers = f"{row.answered:,}" if row.answered == row.asked else f"{row.answered:,}/{row.asked:,}"
        taken = (_number(row.per_answer.get(name)) for name in names)
        table.add_row(*_values(row.values, differ), answers, f"{row.failed:,}", *taken)
    return table


def _by_width(metrics: Sequence[str], width: int) -> Iterator[Sequence[str]]:
    count = max(1, width // _SCORE)
    for start in range(0, len(metrics), count):
        yield metrics[start : start + count]


def _width(differ: Sequence[str], rows: Sequence[CellSummary]) -> int:
    """About what the columns of the axes need."""
    widths = (
        max([len(part) for part in name.split("_")] + [len(value) for value in _column(name, rows)]) for name in differ
    )
    return sum(min(_LONGEST, width) + 2 for width in widths)


def _column(name: str, rows: Sequence[CellSummary]) -> list[str]:
    return [_value(row.values[name]) for row in rows if name in row.values]


def _values(values: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [safe(_value(values[name])) if name in values else "–" for name in names]


def _value(value: Any) -> str:
    return "none" if value is None else repr(value) if isinstance(value, str) and not value.strip() else str(value)


def _score(summary: Summary | None) -> str:
    """The mean, and its interval below it."""
    if summary is None or summary.mean is None:
        return "–"
    mean = f"{summary.mean:.3f}"
    return mean if summary.low is None or summary.high is None else f"{mean}\n[{summary.low:.3f}, {summary.high:.3f}]"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f}" if value < 100 and value != int(value) else f"{value:,.0f}"
