"""Carrying out an experiment on the command line: the plan, the consent to what it costs, the run, what to do next."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oprag.cli.console import money, tell
from oprag.cli.progress import LateProgress
from oprag.errors import ExperimentError, OptionError

if TYPE_CHECKING:
    from oprag.compare.experiment import Experiment
    from oprag.compare.opened import Opened
    from oprag.compare.plan import Plan
    from oprag.compare.progress import Watch
    from oprag.compare.report import Report
    from oprag.compare.trust import AskTrust, TrustNeed

__all__ = [
    "HowToRun",
    "Trust",
    "agree",
    "chatter_apart",
    "interruptible",
    "leave",
    "nothing_left_behind",
    "plan_as_json",
    "plan_of",
    "ran",
    "tell_what_next",
    "trust_or_ask",
]

_INTERRUPTED = 130  # as a shell has it, 128 and the number of the signal


@dataclass(frozen=True)
class HowToRun:
    """How an experiment is run.

    Attributes:
        results: The results file.
        retry_failed: Whether questions that failed before are tried again.
        measure: Whether time, processor and memory are measured.
        ray: The address of a Ray cluster; None for this process.
    """

    results: Path
    retry_failed: bool = False
    measure: bool = False
    ray: str | None = None

    def __call__(self, experiment: Opened, watch: Watch) -> Report:
        """Run it."""
        run: Callable[..., Report]
        if self.measure:
            from oprag.compare.measured import measure_cells

            return measure_cells(experiment, self.results, watch=watch)
        if self.ray is not None:
            from oprag.compare.on_ray import run_on_ray

            run = partial(run_on_ray, address=self.ray)
        else:
            from oprag.compare.running import run
        return run(experiment, self.results, retry_failed=self.retry_failed, watch=watch)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends the command in words, with the exit status that a shell expects."""
    try:
        yield
    except KeyboardInterrupt:
        tell("Interrupted. What was paid for is in the results file; the same command goes on.", "yellow")
        raise typer.Exit(_INTERRUPTED) from None


def leave(report: Report) -> None:
    """End the command with the exit status that says how the run ended.

    Raises:
        typer.Exit: It was interrupted, or some questions have no answer.
    """
    if report.outcome == "interrupted":
        raise typer.Exit(_INTERRUPTED)
    if not report.complete:
        raise typer.Exit(1)


def chatter_apart() -> AbstractContextManager[Any]:
    """What functions of the user's own print goes to standard error: it is no part of a table, or of JSON."""
    return redirect_stdout(sys.stderr)


def plan_of(experiment: Experiment | Opened, path: Path, **options: Any) -> Plan:
    """What the run would do; see `make_plan`."""
    from oprag.compare.plan import make_plan

    with LateProgress("planning", "answers") as progress:
        return make_plan(experiment, path, watch=progress.update, **options)


@contextmanager
def nothing_left_behind(path: Path) -> Iterator[None]:
    """Remove the results file that a plan has made, where no run follows it."""
    there = path.exists()
    try:
        yield
    except BaseException:
        if not there:
            for ending in ("", "-wal", "-shm"):
                Path(f"{path}{ending}").unlink(missing_ok=True)
        raise


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """A plan as values that JSON can hold."""
    return asdict(plan) | {"limits": plan.limits.model_dump(), "calls": plan.calls, "money": plan.money}


Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Trust the author of the experiment file: it may run code and reach other hosts and folders.",
    ),
]


def trust_or_ask(trust: bool) -> bool | AskTrust:  # noqa: FBT001 - it is the option --trust
    """What `read_experiment` takes as `trust`: asks on a terminal where --trust was not given."""
    return trust or (_ask_trust if sys.stdin.isatty() and sys.stderr.isatty() else False)


def _ask_trust(needs: Sequence[TrustNeed]) -> bool:
    from oprag.compare.trust import describe_needs

    tell(f"The experiment file is not trusted, and these parts need trust:\n{describe_needs(needs)}", "yellow")
    if not typer.confirm("Do you trust its author?", err=True):
        raise typer.Exit(1)
    return True


def agree(plan: Plan, experiment: Experiment, *, yes: bool) -> None:
    """Ask before money is spent, or a run begins that a limit will stop.

    Args:
        plan: What the run would do.
        experiment: The experiment.
        yes: Whether the answer is known.

    Raises:
        ExperimentError: No answer could be scored.
        OptionError: There is nobody to ask.
        typer.Exit: The answer is no.
    """
    if plan.unscored is not None:
        raise ExperimentError(plan.unscored, plan)
    reasons = [*_unpriced(plan, experiment), *_reasons(plan)]
    if yes or not reasons:
        return
    if not sys.stdin.isatty():
        raise OptionError(
            f"{', and '.join(reasons)}; there is no terminal to ask on, so nothing was begun: give --yes to go on", plan
        )
    tell(f"{', and '.join(reasons)}.")
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(1)


def _unpriced(plan: Plan, experiment: Experiment) -> Iterator[str]:
    """Models that may cost money, and have no price or one of 0."""
    for name, model in plan.models.items():
        if model.calls and not model.money and experiment.models[name].may_cost:
            tokens = model.input_tokens + model.output_tokens
            price = "have no price" if model.money is None else "are priced at 0"
            yield f"{model.calls:,} calls of {name} with about {tokens:,} tokens may cost money, and {price}"


def _reasons(plan: Plan) -> Iterator[str]:
    cost = sum(model.money or 0.0 for model in plan.models.values())
    if cost > 0:
        yield f"the calls of models cost about {money(cost)}"
    wanted = {"calls": plan.calls, "tokens": plan.tokens, "money": cost}
    for name, limit in plan.limits:
        spent = getattr(plan.spent, name)
        if limit is not None and wanted[name] and spent + wanted[name] > limit:
            yield (
                f"the limit of {limit:,} {name} is not enough: {spent:,.6g} are spent, about {wanted[name]:,.6g} more "
                "are needed"
            )


def ran(run: HowToRun, experiment: Opened) -> Report:
    """Run it with a progress bar."""
    from oprag.cli.progress import RunProgress

    with RunProgress(priced=bool(experiment.experiment.prices)) as progress:
        return run(experiment, progress.update)


def tell_what_next(name: str, path: Path, report: Report, *, measure: bool = False) -> None:
    """Say what failed, what is left, and how to go on."""
    from oprag.compare.db.reader import ResultsReader
    from oprag.compare.money import LimitReached
    from oprag.methods.answering import CUT_SHORT, EMPTY

    if report.broken:
        tell(f"{report.broken:,} answers of earlier runs did not hold, and were made again.", "yellow")
    if report.failed:
        with ResultsReader(path, name) as reader:
            failures = reader.failed_measurements() if measure else reader.failures()
        messages = {failure.error: failure.message for failure in failures}
        tell(f"{sum(report.failed.values()):,} questions in cells failed:", "yellow")
        for error, count in sorted(report.failed.items(), key=lambda one: -one[1]):
            tell(f"  {count:,} × {error}{f': {messages[error]}' if error in messages else ''}", "yellow")
        again = "The same command tries them again" if measure else "Try them again with --retry-failed"
        tell(f"They have no part in any mean. {again}.", "yellow")
    with ResultsReader(path, name) as reader:
        notes = reader.notes()
    for note, advice in (
        (CUT_SHORT, "raise the max_tokens of the model, which is asked anew then"),
        (EMPTY, "a reasoning model may need a higher max_tokens"),
    ):
        if notes[note]:
            tell(f"{notes[note]:,} answers: {note}. They are scored as they are; {advice}.", "yellow")
    if report.outcome != "complete":
        limit = " with a higher one" if isinstance(report.outcome, LimitReached) else ""
        tell(
            f"Stopped: {report.outcome}. {report.left:,} questions in cells are left; the same command{limit} goes on.",
            "yellow",
        )
    tell(f"Results: {path}")
