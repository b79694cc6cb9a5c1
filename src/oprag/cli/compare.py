"""Running an experiment from the command line."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oprag.cli.console import echo_json, tell
from oprag.cli.progress import LateProgress
from oprag.cli.run import (
    RetryFailed,
    Trust,
    Yes,
    carry_out,
    chatter_apart,
    leave,
    plan_as_json,
    show_plan,
    tell_what_next,
    trust_or_ask,
)
from oprag.cli.table_files import TableFiles
from oprag.errors import OptionError

if TYPE_CHECKING:
    from oprag.compare.experiment import Experiment
    from oprag.compare.plan import Plan
    from oprag.compare.report import Report

__all__ = ["compare"]

_MOST_SHOWN = 100  # rows of a table on a terminal
_MOST_COMPUTED = 1_000  # differences, in each metric


def compare(
    file: Annotated[str, typer.Argument(help="A TOML file that says what is compared.")],
    results: Annotated[str | None, typer.Option(help="The results file; by default FILE with the ending .db.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print what would be done, and stop.")] = False,
    trust: Trust = False,
    yes: Yes = False,
    retry_failed: RetryFailed = False,
    max_concurrency: Annotated[
        int | None, typer.Option(min=1, help="How many calls of models at the same time, in place of the file's.")
    ] = None,
    limit_calls: Annotated[
        int | None, typer.Option(min=0, help="The most calls of models, in place of the file's.")
    ] = None,
    limit_tokens: Annotated[
        int | None, typer.Option(min=0, help="The most tokens that models read and write, in place of the file's.")
    ] = None,
    limit_money: Annotated[
        float | None, typer.Option(min=0, help="The most that models may cost, in place of the file's.")
    ] = None,
    compare_axis: Annotated[
        str, typer.Option(help="The axis whose values are compared, each with the first.")
    ] = "order",
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure time, processor and memory: cells one at a time, in fresh processes, nothing shared.",
        ),
    ] = False,
    ray: Annotated[
        str | None, typer.Option(help="The address of a Ray cluster to run on; local starts one here.")
    ] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a row for each setting to this CSV file as well.")
    ] = None,
    parquet: Annotated[str | None, typer.Option(metavar="FILE", help="The same as Parquet.")] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Write a row for each answer to these files, with its text.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known as JSON.")] = False,
) -> None:
    """Run the experiment that FILE describes, from where earlier runs left it, and print its table.

    Ends with 0 when every question in every cell has an answer, with 1 when some have none, and with 130 after Ctrl-C;
    the same command goes on then.
    """
    limits = {"calls": limit_calls, "tokens": limit_tokens, "money": limit_money}
    changes: dict[str, Any] = {"limits": {name: limit for name, limit in limits.items() if limit is not None}}
    if max_concurrency is not None:
        changes["max_concurrency"] = max_concurrency
    _check(compare_axis, measure=measure, ray=ray, retry_failed=retry_failed)
    from oprag.compare.data.data_set import files_of
    from oprag.compare.experiment_file import read_experiment
    from oprag.compare.opened import Opened

    files = TableFiles(csv=csv, parquet=parquet, answers=answers)
    with chatter_apart():
        experiment = read_experiment(file, trust=trust_or_ask(trust), changes=changes)
        path = Path(results) if results is not None else Path(file).with_suffix(".db")
        files.check(file, path, *files_of(experiment.data), plan=plan)
    if plan:
        show_plan(experiment, path, as_json=as_json, retry_failed=retry_failed, measure=measure)
        return
    planned, report = carry_out(Opened(experiment), path, yes=yes, retry_failed=retry_failed, measure=measure, ray=ray)
    _show(experiment, path, planned, report, compare_axis, files, as_json=as_json)
    tell_what_next(experiment.name, path, report, measure=measure)
    leave(report)


def _check(axis: str, *, measure: bool, ray: str | None, retry_failed: bool) -> None:
    from oprag.compare.analysis.settings import check_axis

    check_axis(axis)
    if measure and (ray is not None or retry_failed):
        raise OptionError("--measure runs cells one at a time on this machine; leave --ray and --retry-failed out", ray)


def _show(
    experiment: Experiment, path: Path, plan: Plan, report: Report, axis: str, files: TableFiles, *, as_json: bool
) -> None:
    """Print the table, the differences, and what was measured; and write the files."""
    from oprag.cli.tables import show_differences, show_measured, show_table
    from oprag.compare.analysis.settings import varying_axes
    from oprag.compare.measurements import measured_table
    from oprag.compare.pairs import count_pairs, differences
    from oprag.compare.reading import read_failures, read_results
    from oprag.compare.table import cell_table

    results = read_results(path, experiment.name)
    with LateProgress("computing intervals", "settings") as progress:
        table = cell_table(results, watch=progress.update)
    number = count_pairs(results, axis=axis)
    many = number > _MOST_COMPUTED
    with LateProgress("computing intervals", "differences") as progress:
        pairs = [] if many else differences(results, axis=axis, watch=progress.update)
    measured = measured_table(results, path)
    files.write(results, table, measured, path)
    if many:
        tell(f"More than {_MOST_COMPUTED:,} pairs differ in {axis} alone; oprag.compare.pairs.differences() has them.")
    if as_json:
        echo_json(
            {
                "experiment": experiment.name,
                "results": str(path),
                "plan": plan_as_json(plan),
                "report": asdict(report),
                "cells": [asdict(row) for row in table],
                "differences": None if many else [asdict(pair) for pair in pairs],
                "measured": [asdict(row) for row in measured],
                "failures": [asdict(failure) for failure in read_failures(path, experiment.name)],
            }
        )
        return
    if any(row.answered or row.failed for row in table):
        show_table(table, most=_MOST_SHOWN)
    if number and not many and not pairs:
        tell(f"There are no scores of settings that differ in {axis} alone, so nothing is compared.")
    elif not number and (others := [name for name in varying_axes(table)[0] if name != axis]):
        tell(f"No two settings differ in {axis} alone; --compare-axis compares another one: {', '.join(others)}.")
    show_differences(pairs, table, most=_MOST_SHOWN)
    if measured:
        show_measured(measured, most=_MOST_SHOWN)
