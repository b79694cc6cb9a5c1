"""Runs an experiment from the command line: plan, cost confirmation, run, next steps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from oprag.cli.console import EXIT_INCOMPLETE, EXIT_INTERRUPTED, echo_json, print_status
from oprag.cli.progress import LateProgress, RunProgress
from oprag.errors import ExperimentError, OptionError

if TYPE_CHECKING:
    from oprag.compare.plan import Plan
    from oprag.compare.running.resolved import ResolvedExperiment
    from oprag.compare.running.run import RunReport
    from oprag.compare.spec.experiment import Experiment

__all__ = [
    "leave",
    "plan_and_run",
    "plan_as_json",
    "print_next_steps",
    "show_plan",
    "stdout_to_stderr",
]


def _confirm(question: str) -> None:
    if not typer.confirm(question, err=True):
        raise typer.Exit(EXIT_INCOMPLETE)


def stdout_to_stderr() -> redirect_stdout[Any]:
    """Redirect what the user's functions print to standard error, to keep it out of tables and JSON."""
    return redirect_stdout(sys.stderr)


def show_plan(experiment: Experiment, path: Path, *, as_json: bool, **how: bool) -> None:
    """Print what a run would do; see `make_plan`."""
    with stdout_to_stderr():
        plan = _plan(experiment, path, **how)
    if as_json:
        echo_json(plan_as_json(plan))
    else:
        typer.echo(plan.describe())


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """Convert a plan to JSON values."""
    return asdict(plan) | {"limits": plan.limits.model_dump(), "calls": plan.calls, "money": plan.money}


def _plan(experiment: Experiment | ResolvedExperiment, path: Path, **how: bool) -> Plan:
    from oprag.compare.plan import make_plan

    with LateProgress("planning", "answers") as progress:
        return make_plan(experiment, path, on_progress=progress.update, **how)


def plan_and_run(
    opened: ResolvedExperiment,
    path: Path,
    *,
    yes: bool,
    retry_failed: bool,
    measure: bool = False,
    ray: str | None = None,
) -> tuple[Plan, RunReport]:
    """Plan an experiment, ask for confirmation if it costs money or exceeds a limit, and run it.

    Args:
        opened: The experiment.
        path: The results file; a new file is removed if nothing is run.
        yes: Whether to skip the confirmation.
        retry_failed: Whether to retry questions that failed in an earlier run.
        measure: Whether to measure time, CPU and memory of each answer.
        ray: The address of a Ray cluster; None runs in this process.

    Raises:
        ExperimentError: No answer could be scored.
        OptionError: A confirmation is needed, but standard input is not a terminal.
        typer.Exit: The user declined, or interrupted the run twice.
    """
    with stdout_to_stderr():
        with _removing_unused(path):
            plan = _plan(opened, path, retry_failed=retry_failed, keep=True)
            print_status(f"{plan.describe()}\nresults file: {path}")
            _confirm_cost(plan, opened.experiment, yes=yes)
        try:
            return plan, _run(opened, path, retry_failed=retry_failed, measure=measure, ray=ray)
        except KeyboardInterrupt:
            print_status(
                "Interrupted. Finished calls are in the results file; run the same command to continue.", "yellow"
            )
            raise typer.Exit(EXIT_INTERRUPTED) from None


@contextmanager
def _removing_unused(path: Path) -> Iterator[None]:
    """Remove the results file that the plan created if no run follows."""
    existed = path.exists()
    try:
        yield
    except BaseException:
        if not existed:
            for ending in ("", "-wal", "-shm"):
                Path(f"{path}{ending}").unlink(missing_ok=True)
        raise


def _confirm_cost(plan: Plan, experiment: Experiment, *, yes: bool) -> None:
    if plan.unscored is not None:
        raise ExperimentError(plan.unscored, plan)
    reasons = [*_unpriced(plan, experiment), *_reasons(plan)]
    if yes or not reasons:
        return
    if not sys.stdin.isatty():
        raise OptionError(
            f"{', and '.join(reasons)}; stdin is not a terminal, so nothing was started: pass --yes to continue",
            plan,
        )
    print_status(f"{', and '.join(reasons)}.")
    _confirm("Continue?")


def _unpriced(plan: Plan, experiment: Experiment) -> Iterator[str]:
    """Yield a reason for each model that may cost money but has no price, or a price of 0."""
    for name, model in plan.models.items():
        # Own pipelines are not models.
        if model.calls and not model.money and name in experiment.models and experiment.models[name].may_cost:
            tokens = model.input_tokens + model.output_tokens
            price = "have no price" if model.money is None else "are priced at 0"
            yield f"{model.calls:,} calls of {name} with about {tokens:,} tokens may cost money, but {price}"


def _reasons(plan: Plan) -> Iterator[str]:
    from oprag.compare.analysis.wording import money_text

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


def _run(opened: ResolvedExperiment, path: Path, *, retry_failed: bool, measure: bool, ray: str | None) -> RunReport:
    with RunProgress(priced=bool(opened.experiment.prices)) as progress:
        from oprag.compare.running.run import run

        return run(opened, path, retry_failed=retry_failed, measure=measure, ray=ray, on_progress=progress.update)


def leave(report: RunReport) -> None:
    """Exit with the code for the outcome of the run; return if it is complete.

    Raises:
        typer.Exit: The run was interrupted, or some questions have no answer.
    """
    if report.outcome == "interrupted":
        raise typer.Exit(EXIT_INTERRUPTED)
    if not report.complete:
        raise typer.Exit(EXIT_INCOMPLETE)


def print_next_steps(name: str, path: Path, report: RunReport) -> None:
    """Print what failed, what is left to do, and how to continue."""
    from oprag.compare.db.reader import ResultsReader
    from oprag.compare.running.calls import LimitReached
    from oprag.methods.answering import CUT_SHORT, EMPTY

    with ResultsReader(path, name) as reader:
        failures = reader.failures()
        notes = reader.notes()
    if report.failed:
        messages = {failure.error: failure.message for failure in failures}
        print_status(f"{sum(report.failed.values()):,} questions in cells failed:", "yellow")
        for error, count in sorted(report.failed.items(), key=lambda one: -one[1]):
            print_status(f"  {count:,} × {error}{f': {messages[error]}' if error in messages else ''}", "yellow")
        print_status("They are excluded from all means. Retry them with --retry-failed.", "yellow")
    for note, advice in (
        (CUT_SHORT, "raise the model's max_tokens to have them regenerated"),
        (EMPTY, "a reasoning model may need a higher max_tokens"),
    ):
        if notes[note]:
            print_status(f"{notes[note]:,} answers: {note}. They are scored unchanged; {advice}.", "yellow")
    if report.outcome != "complete":
        higher = " with a higher limit" if isinstance(report.outcome, LimitReached) else ""
        left = f"{report.remaining:,} questions in cells are left"
        print_status(f"Stopped: {report.outcome}. {left}; run the same command{higher} to continue.", "yellow")
    print_status(f"Results: {path}")
