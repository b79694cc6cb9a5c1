"""The command `oprag compare`: runs an experiment and prints a table of its results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oprag.cli.console import EXIT_INCOMPLETE, echo_json, print_status
from oprag.cli.experiments import read_experiment
from oprag.cli.gate import minimum_of, passes
from oprag.cli.options import (
    LIMITS,
    OUTPUT,
    AsJson,
    Everything,
    LimitCalls,
    LimitTokens,
    MainMetric,
    MaxConcurrency,
    RetryFailed,
    Yes,
)
from oprag.cli.progress import LateProgress
from oprag.cli.run import leave, plan_and_run, plan_as_json, print_next_steps, show_plan, stdout_to_stderr
from oprag.errors import InputFileError, OptionError
from oprag.files.writing import check_target
from oprag.masking import describe
from oprag.profile import PROFILE, write_profile

if TYPE_CHECKING:
    from oprag.compare.analysis.differences import SettingDifference
    from oprag.compare.plan import Plan
    from oprag.compare.results import Results
    from oprag.compare.running.report import RunReport
    from oprag.compare.spec.experiment import Experiment

__all__ = ["compare"]

_MAX_DIFFERENCES = 1_000  # for each metric


def _axis_names() -> list[str]:
    from oprag.compare.spec.axes import axes

    return list(axes())


def compare(
    file: Annotated[str, typer.Argument(help="The TOML file of the experiment, or PYTHON_FILE:NAME of an Experiment.")],
    results_file: Annotated[
        str | None, typer.Option("--results", help="The results file. Default: FILE with the suffix .db.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the planned work and its cost, then stop.")] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Pilot run: ask only this many questions of each data set. Run the same command without it to ask the "
            "rest.",
        ),
    ] = None,
    yes: Yes = False,
    retry_failed: RetryFailed = False,
    max_concurrency: MaxConcurrency = None,
    limit_calls: LimitCalls = None,
    limit_tokens: LimitTokens = None,
    limit_money: Annotated[
        float | None, typer.Option(min=0, help="Maximum cost of model calls over all runs.", rich_help_panel=LIMITS)
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure time, CPU and memory of each new answer; questions are answered one at a time.",
        ),
    ] = False,
    ray: Annotated[
        str | None, typer.Option(help="The address of a Ray cluster to run on; local starts one on this machine.")
    ] = None,
    compare_axis: Annotated[
        str,
        typer.Option(
            help="The axis whose values are compared; the first value is the baseline.",
            autocompletion=_axis_names,
            rich_help_panel=OUTPUT,
        ),
    ] = "order",
    metric: MainMetric = None,
    everything: Everything = False,
    csv: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also write the results to this CSV file, one row per setting.", rich_help_panel=OUTPUT
        ),
    ] = None,
    answers: Annotated[
        bool,
        typer.Option(
            "--answers",
            help="With --csv: write one row per answer, with its text, instead of one per setting.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(
            "--write-profile",
            metavar="FILE",
            help="Write the setting to deploy to this file, for from_profile.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=VALUE",
            help="Exit with 1 if the setting to deploy scores less; may be repeated.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Exit with 1 if a setting scores significantly less than in this earlier results file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the experiment in FILE, resuming earlier runs, and print a table of its results.

    Exits with 0 when every question has an answer in every setting; until then, the same command continues the run.
    Limits given on the command line replace those in FILE.
    """
    from oprag.compare.data.data_set import files_of
    from oprag.compare.results import Results
    from oprag.compare.running.resolved import ResolvedExperiment
    from oprag.compare.spec.axes import check_axis

    check_axis(compare_axis)
    if measure and (ray is not None or max_concurrency is not None):
        raise OptionError(
            "--measure makes one call at a time, on this machine; remove --ray and --max-concurrency",
            max_concurrency if ray is None else ray,
        )
    limits = {"calls": limit_calls, "tokens": limit_tokens, "money": limit_money}
    changes: dict[str, Any] = {"limits": {name: limit for name, limit in limits.items() if limit is not None}}
    if max_concurrency is not None:
        changes["max_concurrency"] = max_concurrency
    minima = [minimum_of(one) for one in fail_under or ()]
    with stdout_to_stderr():
        experiment, place = read_experiment(file, changes)
        experiment = experiment if sample is None else experiment.pilot(sample)
        path = Path(results_file) if results_file is not None else place.with_suffix(".db")
        _check_metric(metric, experiment)
        _check_csv(csv, place, path, *files_of(experiment.data), answers=answers, plan=plan)
        _check_gate(profile, against, place, path)
    if plan:
        show_plan(experiment, path, as_json=as_json, retry_failed=retry_failed)
        return
    planned, report = plan_and_run(
        ResolvedExperiment(experiment), path, yes=yes, retry_failed=retry_failed, measure=measure, ray=ray
    )
    results = Results.open(path, experiment.name)
    metric = metric or (results.metric if results.ranking_metrics else None)
    metrics = None if as_json else [] if metric is None else [metric]
    _compute_intervals(results, None if csv is not None or everything else metrics)
    pairs = _differences(results, compare_axis, metrics)
    if csv is not None:
        results.to_csv(csv, answers=answers)
        print_status(f"CSV: {csv}")
    if as_json:
        _print_json(results, planned, report, pairs)
    else:
        _print(results, metric, compare_axis, pairs, everything=everything, measured=everything or measure)
    if measure:
        _print_unmeasured(results)
    print_next_steps(experiment.name, path, report)
    _write_profile(results, report, metric, profile)
    leave(report)
    if not passes(results, minima, against, metric):
        raise typer.Exit(EXIT_INCOMPLETE)


def _check_gate(profile: str | None, against: str | None, *read: Path) -> None:
    """Reject a profile that cannot be written and a missing results file, before any model is called."""
    if profile is not None:
        check_target(profile, *read, kind=PROFILE)
    if against is not None and not Path(against).is_file():
        raise InputFileError(f"file not found: {against}", against)


def _write_profile(results: Results, report: RunReport, metric: str | None, profile: str | None) -> None:
    if profile is not None and report.complete:
        write_profile(results.profile(metric), profile)
        print_status(f"Profile: {profile}")


def _check_metric(metric: str | None, experiment: Experiment) -> None:
    """Reject a metric that the table cannot show, before any model is called."""
    from oprag.compare.metrics.registry import check_better

    if metric is None:
        return
    check_better(metric)
    if metric not in experiment.metric_names:
        names = ", ".join(experiment.metric_names)
        raise OptionError(f"--metric must be a metric of the experiment: {names}; got {describe(metric)}", metric)


def _check_csv(csv: str | None, *read: str | os.PathLike[str], answers: bool, plan: bool) -> None:
    """Reject an output file that cannot be written, before any model is called."""
    if csv is None:
        if answers:
            raise OptionError("--answers requires an output file; add --csv", answers)
        return
    if plan:
        raise OptionError("--plan runs nothing, so there is no table to write; remove --csv", csv)
    from oprag.compare.export import CSV

    check_target(csv, *read, kind=CSV)


def _print_json(results: Results, plan: Plan, report: RunReport, pairs: Sequence[SettingDifference] | None) -> None:
    from oprag.cli.tables import difference_as_json, setting_as_json
    from oprag.compare.db.reader import ResultsReader

    with ResultsReader(results.path, results.experiment) as reader:
        failures = reader.failures()
    echo_json(
        {
            "experiment": results.experiment,
            "results": str(results.path),
            "plan": plan_as_json(plan),
            "report": asdict(report),
            "cores": list(results.matrix.cores),
            "settings": [setting_as_json(setting) for setting in results.settings],
            "differences": None if pairs is None else [difference_as_json(pair) for pair in pairs],
            "failures": [failure._asdict() for failure in failures],
        }
    )


def _print_unmeasured(results: Results) -> None:
    answered = sum(one.answered for one in results.settings)
    missing = answered - sum(one.measured for one in results.settings)
    if missing:
        print_status(
            f"{missing:,} of {answered:,} answers have no measurement, since they or replies to their prompts were "
            "stored before; --results with a new file asks again.",
            "yellow",
        )


def _compute_intervals(results: Results, metrics: Sequence[str] | None) -> None:
    """Compute the intervals of these metrics, or all, with a progress bar: each is otherwise computed on first use."""
    with LateProgress("computing intervals", "settings") as progress:
        for done, setting in enumerate(results.settings, 1):
            for metric in setting.scores:
                if metrics is None or metric in metrics:
                    setting.scores[metric]
            progress.update(done, len(results))


def _differences(results: Results, axis: str, metrics: Sequence[str] | None) -> list[SettingDifference] | None:
    """Return the differences along an axis; None if there are too many."""
    if results.count_pairs(axis) > _MAX_DIFFERENCES:
        print_status(
            f"Differences are omitted: more than {_MAX_DIFFERENCES:,} pairs of settings differ in {axis} alone; "
            "Results.differences() computes them."
        )
        return None
    return results.differences(axis, metrics)


def _print(
    results: Results,
    metric: str | None,
    axis: str,
    pairs: Sequence[SettingDifference] | None,
    *,
    everything: bool,
    measured: bool,
) -> None:
    from oprag.cli.tables import show_section, show_settings, show_verdicts
    from oprag.compare.report import differences, settings

    others = [name for name in results.axes if name != axis]
    if metric is None:
        print_status("No metric with scores can rank the settings, so nothing is compared.")
    elif not results.count_pairs(axis) and others:
        print_status(
            f"No two settings differ in {axis} alone; choose another axis with --compare-axis: {', '.join(others)}."
        )
    elif pairs == [] and results.count_pairs(axis):
        print_status(f"Settings that differ in {axis} alone have no scores, so nothing is compared.")
    if metric is not None and any(setting.answered or setting.failed for setting in results.settings):
        show_settings(results, metric, pairs or (), everything=everything)
        if metric in results.metrics:
            show_verdicts(results.verdicts(metric))
    if everything or metric is None:
        show_section(settings.section(results, metric))
    if not everything:
        print_status("--all prints all settings, metrics, differences and measurements; --json prints everything.")
    elif metric is not None:
        show_section(differences.section(results, metric))
    if measured:
        show_section(settings.measured(results))
