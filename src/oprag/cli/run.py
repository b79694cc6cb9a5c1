"""Runs an experiment from the command line: plan, cost confirmation, run, results, next steps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import typer

from oprag._internal.masking import describe
from oprag.cli.console import EXIT_INCOMPLETE, EXIT_INTERRUPTED, WorkProgress, print_status
from oprag.cli.tables import print_json, print_tables
from oprag.compare.analysis.settings import money_text
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.experiment import Experiment
from oprag.compare.metrics.registry import check_better
from oprag.compare.plan import Plan, make_plan
from oprag.compare.results import Results
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.run import RunReport, run
from oprag.errors import ExperimentError, OptionError
from oprag.methods.run import CUT_SHORT, EMPTY

__all__ = [
    "Done",
    "check_metric",
    "finish",
    "plan_and_run",
    "plan_of",
    "progress_text",
    "stdout_to_stderr",
]


Done = tuple[Plan, RunReport, Results]
"""A run that has ended: its plan, its report, and the results so far."""


def stdout_to_stderr() -> redirect_stdout[Any]:
    """Redirect what the user's functions print to standard error, to keep it out of tables and JSON."""
    return redirect_stdout(sys.stderr)


def check_metric(metric: str | None, experiment: Experiment) -> None:
    """Reject a metric that the table cannot show, before any model is called."""
    if metric is None:
        return
    check_better(metric)
    if metric not in experiment.metric_names:
        names = ", ".join(experiment.metric_names)
        raise OptionError(f"--metric must be a metric of the experiment: {names}; got {describe(metric)}", metric)


def plan_of(experiment: Experiment | PreparedExperiment, path: Path, **how: bool) -> Plan:
    """Return what a run would do; see `make_plan`."""
    with stdout_to_stderr(), WorkProgress("answers planned") as progress:
        return make_plan(experiment, path, on_progress=progress.update, **how)


def plan_and_run(
    experiment: Experiment,
    path: Path,
    *,
    yes: bool,
    retry_failed: bool,
    measure: bool = False,
    ray: str | None = None,
) -> Done:
    """Plan an experiment, ask for confirmation if it costs money or exceeds a limit, and run it.

    A new results file is removed if nothing is run.
    """
    opened = PreparedExperiment(experiment)
    is_new = not path.exists()
    with stdout_to_stderr():
        try:
            plan = plan_of(opened, path, retry_failed=retry_failed, keep=True)
            print_status(f"{plan.describe()}\nresults file: {path}")
            _confirm_cost(plan, experiment, yes=yes)
        except BaseException:
            for file in [path, Path(f"{path}-wal"), Path(f"{path}-shm")] if is_new else ():
                file.unlink(missing_ok=True)
            raise
        try:
            report = _run(opened, path, retry_failed=retry_failed, measure=measure, ray=ray)
        except KeyboardInterrupt:
            print_status(
                "Interrupted. Finished calls are in the results file; run the same command to continue.", "yellow"
            )
            raise typer.Exit(EXIT_INTERRUPTED) from None
    return plan, report, Results.open(path, experiment.name)


def _confirm_cost(plan: Plan, experiment: Experiment, *, yes: bool) -> None:
    if plan.unscored is not None:
        raise ExperimentError(plan.unscored, plan)
    reasons = ", and ".join(_reasons(plan, experiment))
    if yes or not reasons:
        return
    if not sys.stdin.isatty():
        raise OptionError(f"{reasons}; stdin is not a terminal, so nothing was started: pass --yes to continue", plan)
    print_status(f"{reasons}.")
    if not typer.confirm("Continue?", err=True):
        raise typer.Exit(EXIT_INCOMPLETE)


def _reasons(plan: Plan, experiment: Experiment) -> Iterator[str]:
    """Yield why the run needs a confirmation: it costs money, may cost money, or exceeds a limit."""
    for name, model in plan.models.items():
        # Own pipelines are not models.
        if model.calls and not model.money and name in experiment.models and experiment.models[name].may_cost:
            tokens = model.input_tokens + model.output_tokens
            price = "have no price" if model.money is None else "are priced at 0"
            yield f"{model.calls:,} calls of {name} with about {tokens:,} tokens may cost money, but {price}"
    cost = sum(model.money or 0.0 for model in plan.models.values())
    embedding = sum(one.money or 0.0 for one in plan.embedders.values())
    if cost > 0:
        yield f"the model calls cost about {money_text(cost)}"
    if embedding > 0:
        yield f"embedding costs about {money_text(embedding)}"
    needed = {"calls": plan.calls, "tokens": plan.tokens, "money": cost}
    for name, limit in plan.limits:
        spent = getattr(plan.spent, name)
        if limit is not None and needed[name] and spent + needed[name] > limit:
            yield (
                f"the limit of {limit:,} {name} is not enough: {spent:,.6g} spent already, about {needed[name]:,.6g} "
                "more needed"
            )


def _run(opened: PreparedExperiment, path: Path, *, retry_failed: bool, measure: bool, ray: str | None) -> RunReport:
    with WorkProgress() as progress:

        def show(now: RunReport) -> None:
            progress.update(now.done, now.total, progress_text(now, priced=bool(opened.experiment.prices)))

        return run(opened, path, retry_failed=retry_failed, measure=measure, ray=ray, on_progress=show)


def progress_text(now: RunReport, *, priced: bool) -> str:
    """Describe the progress of a run on one line."""
    parts = [] if not now.outcome else [f"stopping, {now.running:,} calls in progress"]
    parts.append(f"{now.done:,}/{now.total:,} answers")
    if now.failed:
        parts.append(f"{sum(now.failed.values()):,} failed")
    if priced:
        parts.append(f"{money_text(now.spent.money)} spent")
    if now.spent.calls:
        parts += [f"{now.spent.calls:,} calls", f"{now.spent.tokens:,} tokens"]
    return ", ".join(parts)


def finish(
    done: Done,
    metric: str | None,
    *,
    profile: str | None,
    axis: str = "order",
    everything: bool,
    as_json: bool,
    measured: bool = False,
) -> None:
    """Print the results of a run and how to continue, write the profile, and exit unless all is answered."""
    plan, report, results = done
    if as_json:
        print_json(plan, report, results, axis)
    else:
        metric = metric or (results.metric if results.ranking_metrics else None)
        print_tables(results, metric, axis, everything=everything, measured=measured)
    if measured and (missing := sum(one.answered - one.measured for one in results.settings)):
        advice = "measure all of them in a new file with --results"
        print_status(f"{missing:,} answers were stored before, so they have no measurement; {advice}.", "yellow")
    _print_next_steps(report, results)
    if profile is not None and report.complete:
        metric = results.ranking_metric(metric)
        setting = results.deployed(metric)
        about = {"experiment": results.experiment, metric: setting.scores[metric].describe()}
        from oprag.methods.profile import write_profile

        write_profile(setting.profile(about), profile)
        print_status(f"Profile: {profile}")
    elif profile is not None:
        print_status("No profile was written, because some questions have no answer yet.", "yellow")
    if not report.complete:
        raise typer.Exit(EXIT_INTERRUPTED if report.outcome == "interrupted" else EXIT_INCOMPLETE)


def _print_next_steps(report: RunReport, results: Results) -> None:
    """Print what failed, what is left to do, and how to continue."""
    with ResultsReader.open(results.path, results.experiment) as reader:
        messages = {failure.error: failure.message for failure in reader.failures()}
    if report.failed:
        print_status(f"{sum(report.failed.values()):,} questions in cells failed:", "yellow")
        for error, count in sorted(report.failed.items(), key=lambda one: -one[1]):
            print_status(f"  {count:,} × {error}{f': {messages[error]}' if error in messages else ''}", "yellow")
        print_status("They are excluded from all means. Retry them with --retry-failed.", "yellow")
    for note, advice in (
        (CUT_SHORT, "raise the model's max_tokens to have them regenerated"),
        (EMPTY, "a reasoning model may need a higher max_tokens"),
    ):
        if number := sum(setting.notes.get(note, 0) for setting in results.settings):
            print_status(f"{number:,} answers: {note}. They are scored unchanged; {advice}.", "yellow")
    if report.outcome != "complete":
        left = f"{report.remaining:,} questions in cells are left"
        print_status(f"Stopped: {report.outcome}. {left}; run the same command to continue.", "yellow")
    print_status(f"Results: {results.path}")
