"""The command `oprag compare`: running an experiment, and its tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oprag.cli.console import echo_json, tell
from oprag.cli.options import LIMITS, OUTPUT, AsJson
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
from oprag.errors import OptionError
from oprag.files.writing import check_target

if TYPE_CHECKING:
    from oprag.compare.frame import Comparison
    from oprag.compare.running.plan import Plan
    from oprag.compare.running.report import RunReport
    from oprag.compare.spec.experiment import Experiment

__all__ = ["compare"]

_MOST_SHOWN = 100  # rows of a table on a terminal
_MOST_COMPUTED = 1_000  # differences, in each metric


def _axis_names() -> list[str]:
    from oprag.compare.spec.axes import axes

    return list(axes())


def compare(
    file: Annotated[str, typer.Argument(help="A TOML file that says what is compared.")],
    results: Annotated[str | None, typer.Option(help="The results file; by default FILE with the ending .db.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print what would be done, and stop.")] = False,
    trust: Trust = False,
    yes: Yes = False,
    retry_failed: RetryFailed = False,
    max_concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of concurrent calls of models, in place of the file's.", rich_help_panel=LIMITS
        ),
    ] = None,
    limit_calls: Annotated[
        int | None,
        typer.Option(min=0, help="Maximum number of calls of models, in place of the file's.", rich_help_panel=LIMITS),
    ] = None,
    limit_tokens: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Maximum number of tokens that models read and write, in place of the file's.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    limit_money: Annotated[
        float | None,
        typer.Option(min=0, help="Maximum cost of the models, in place of the file's.", rich_help_panel=LIMITS),
    ] = None,
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
    compare_axis: Annotated[
        str,
        typer.Option(
            help="The axis whose values are compared, each with the first.",
            autocompletion=_axis_names,
            rich_help_panel=OUTPUT,
        ),
    ] = "order",
    csv: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write a row for each setting to this CSV file as well.", rich_help_panel=OUTPUT
        ),
    ] = None,
    parquet: Annotated[
        str | None, typer.Option(metavar="FILE", help="The same as Parquet.", rich_help_panel=OUTPUT)
    ] = None,
    answers: Annotated[
        bool,
        typer.Option(
            "--answers", help="Write a row for each answer to these files, with its text.", rich_help_panel=OUTPUT
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the experiment that FILE describes, from where earlier runs left it, and print its table.

    Ends with 0 when every question in every setting has an answer; else the same command goes on.
    """
    limits = {"calls": limit_calls, "tokens": limit_tokens, "money": limit_money}
    changes: dict[str, Any] = {"limits": {name: limit for name, limit in limits.items() if limit is not None}}
    if max_concurrency is not None:
        changes["max_concurrency"] = max_concurrency
    _check(compare_axis, measure=measure, ray=ray, retry_failed=retry_failed)
    from oprag.compare.data.data_set import files_of
    from oprag.compare.spec.experiment import Experiment
    from oprag.compare.spec.resolved import ResolvedExperiment

    files = {kind: name for kind, name in (("CSV", csv), ("Parquet", parquet)) if name is not None}
    with chatter_apart():
        experiment = Experiment.from_file(file, trust=trust_or_ask(trust), changes=changes)
        path = Path(results) if results is not None else Path(file).with_suffix(".db")
        _check_files(files, file, path, *files_of(experiment.data), answers=answers, plan=plan)
    if plan:
        show_plan(experiment, path, as_json=as_json, retry_failed=retry_failed, measure=measure)
        return
    planned, report = carry_out(
        ResolvedExperiment(experiment), path, yes=yes, retry_failed=retry_failed, measure=measure, ray=ray
    )
    _show(experiment, path, planned, report, compare_axis, files, answers=answers, as_json=as_json)
    tell_what_next(experiment.name, path, report, measure=measure)
    leave(report)


def _check(axis: str, *, measure: bool, ray: str | None, retry_failed: bool) -> None:
    from oprag.compare.spec.axes import check_axis

    check_axis(axis)
    if measure and (ray is not None or retry_failed):
        raise OptionError("--measure runs cells one at a time on this machine; leave --ray and --retry-failed out", ray)


def _check_files(files: Mapping[str, str], *read: str | os.PathLike[str], answers: bool, plan: bool) -> None:
    """Refuse what cannot be written, before anything is spent."""
    if answers and not files:
        raise OptionError("--answers says what --csv and --parquet write; name such a file", answers)
    if not files:
        return
    named = list(files.values())
    if plan:
        raise OptionError("--plan runs nothing, so it has no table to write; leave out --csv and --parquet", named)
    from oprag.compare.exporting import CSV, PARQUET, check_parquet

    if "Parquet" in files:
        check_parquet()
    for kind, name in files.items():
        check_target(name, *read, kind={"CSV": CSV, "Parquet": PARQUET}[kind])
    if len({Path(name).resolve() for name in named}) < len(named):
        raise OptionError(f"--csv and --parquet must be two files, got {named[0]} for both", named)


def _write_files(files: Mapping[str, str], comparison: Comparison, *, answers: bool) -> None:
    write = {"CSV": comparison.to_csv, "Parquet": comparison.to_parquet}
    for kind, name in files.items():
        write[kind](name, answers=answers)
        tell(f"{kind}: {name}")


def _show(
    experiment: Experiment,
    path: Path,
    plan: Plan,
    report: RunReport,
    axis: str,
    files: Mapping[str, str],
    *,
    answers: bool,
    as_json: bool,
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
    if files:
        from oprag.compare.frame import Comparison
        from oprag.compare.quantities import read_seconds

        comparison = Comparison(results, table, measured, read_seconds(results, path), path)
        _write_files(files, comparison, answers=answers)
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
