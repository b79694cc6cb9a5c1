"""Runs an experiment from the command line: plan, cost confirmation, run, results, next steps."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer
from rich.table import Table as RichTable

from oprag._internal.files.writing import check_target
from oprag._internal.masking import describe
from oprag._internal.text_table import safe
from oprag.cli.console import EXIT_INCOMPLETE, EXIT_INTERRUPTED, WorkProgress, console, echo_json, print_status
from oprag.cli.options import Running
from oprag.compare.analysis.best import Curve, choose_economical
from oprag.compare.analysis.differences import SettingDifference, changes_since
from oprag.compare.analysis.settings import ORDERED_AXES, amount, by_data, money_text
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.records import Failure
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.experiment import Experiment
from oprag.compare.grid import AVERAGED, axes, check_axis, has_effect
from oprag.compare.metrics.registry import check_better
from oprag.compare.plan import Plan, make_plan
from oprag.compare.report import tables
from oprag.compare.report.page import Part, Table, Text
from oprag.compare.results import CSV, Results
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.run import RunReport, run
from oprag.compare.stats import Difference
from oprag.errors import BudgetError, ExperimentError, OptionError
from oprag.methods.profile import PROFILE, write_profile
from oprag.methods.run import CUT_SHORT, EMPTY

__all__ = [
    "check_compared",
    "check_metric",
    "minimum_of",
    "plan_as_json",
    "plan_of",
    "run_and_print",
]

_Checks = Iterable[tuple[str, Mapping[str, Any]]]  # the result of each check as text and as JSON values

_MAX_ROWS = 10  # of the table of settings
_GAP = 2  # characters between two columns
_NAME_WIDTH = 20  # characters of a name column before it is folded to make room for other columns


def plan_of(experiment: Experiment | PreparedExperiment, path: Path, **how: bool) -> Plan:
    """Return what a run would do; see `make_plan`."""
    # What the user's functions print must not get into tables and JSON.
    with redirect_stdout(sys.stderr), WorkProgress("answers planned") as progress:
        return make_plan(experiment, path, on_progress=progress.update, **how)


def run_and_print(
    experiment: Experiment,
    path: Path,
    how: Running,
    metric: str | None,
    *,
    profile: str | None,
    csv: str | None = None,
    read: Sequence[Path] = (),
    note: str = "",
    axis: str = "order",
    measure: bool = False,
    ray: str | None = None,
    minima: Sequence[tuple[str, float]] = (),
    against: str | None = None,
) -> None:
    """Run an experiment, and print its results and how to continue.

    Exit unless every question has an answer and the results pass the checks.

    Outputs that cannot be written, or would replace an input, are rejected before any model is called.
    """
    if metric is not None:
        check_metric("--metric", metric, experiment)
    if profile is not None and len(sets := {cell.data for cell in experiment.grid_cells.cells}) > 1:
        one, *_ = names = sorted(sets)
        advice = f"name one in the grid, such as data = {one!r}"
        raise OptionError(f"--write-profile: each data set has a setting to deploy of its own; {advice}", names)
    inputs = [path, *read, *(file for data_set in experiment.data.values() for file in data_set.files)]
    for target, kind in ((csv, CSV), (profile, PROFILE)):
        if target is not None:
            check_target(target, *inputs, kind=kind)
    if note and not how.as_json:
        print_status(note)
    plan, report = _run(experiment, path, how, measure=measure, ray=ray)
    results = Results.open(path, experiment.name)
    with ResultsReader.open(path, experiment.name) as reader:
        failures = reader.failures()
    if csv is not None:
        results.to_csv(csv)
        print_status(f"CSV: {csv}")
    metric = metric or (results.metric if results.matrix.ranking_metrics else None)
    checked: _Checks = _checks(results, minima, against, metric) if report.complete else ()
    if how.as_json:
        checked = [*checked]
        about = {"plan": plan_as_json(plan), "report": asdict(report), "failures": [one._asdict() for one in failures]}
        about["checks"] = [values for _, values in checked]
        _print_json(results, metric, axis, about)
    else:
        _print_tables(results, metric, axis, everything=how.everything, measured=measure)
    if measure and (missing := sum(one.answered - one.measured for one in results.settings)):
        why = "use a stored reply, perhaps of another setting, so they have no measurement"
        print_status(f"{missing:,} answers {why}; run each setting alone in a new file (--results).", "yellow")
    _print_next_steps(report, results, failures)
    _end(report, results, metric, profile, checked)


def _end(report: RunReport, results: Results, metric: str | None, profile: str | None, checked: _Checks) -> None:
    """Write the profile, print the checks, and exit unless every question has an answer and each check is passed."""
    if profile is not None and report.complete:
        metric = results.matrix.ranking_metric(metric)
        setting = results.deployed(metric)
        about = {"experiment": results.experiment, metric: setting.scores[metric].describe()}
        write_profile(setting.profile(about), profile)
        print_status(f"Profile: {profile}")
    elif profile is not None:
        print_status("No profile was written, because some questions have no answer yet.", "yellow")
    if not report.complete:
        raise typer.Exit(EXIT_INTERRUPTED if report.outcome == "interrupted" else EXIT_INCOMPLETE)
    passed = []
    for text, values in checked:
        print_status(text)
        passed.append(values["passed"])
    if not all(passed):
        raise typer.Exit(EXIT_INCOMPLETE)


def check_compared(axis: str, experiment: Experiment) -> None:
    """Reject an axis that does not vary; the order is compared where it does."""
    check_axis(axis)
    cells = [cell.values for cell in experiment.grid_cells.cells]
    values = {name: [one[name] for one in cells if has_effect(name, one)] for name in axes()}
    varied = [name for name, some in values.items() if any(value != some[0] for value in some)]
    varied = [name for name in varied if name not in (*AVERAGED, "data")]
    if axis not in ("order", *varied):
        why = "data sets are not compared" if axis == "data" else f"{axis} is the same in all settings"
        raise OptionError(f"--compare-axis: {why}; axes that can be compared: {', '.join(varied) or 'none'}", axis)


def minimum_of(given: str) -> tuple[str, float]:
    """Read METRIC=VALUE."""
    name, _, number = (one.strip() for one in given.partition("="))
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name or not math.isfinite(value):
        raise OptionError(f"--fail-under must be METRIC=VALUE, such as token_f1=0.4, got {describe(given)}", given)
    check_better(name)
    return name, value


def _checks(results: Results, minima: Sequence[tuple[str, float]], against: str | None, metric: str | None) -> _Checks:
    """Whether the settings to deploy reach each minimum, and no setting is significantly worse than in a file."""
    main = results.matrix.ranking_metric(metric) if minima or against is not None else ""
    sets = by_data([one for one in results.settings if main in one.scores]).values() if minima else ()
    for setting in (choose_economical(some, main)[0] for some in sets):
        for name, minimum in minima:
            mean = setting.scores[name].mean if name in setting.scores else None
            passed = mean is not None and mean >= minimum
            score = "no score" if mean is None else f"{mean:.3f}"
            values = {"metric": name, "setting": dict(setting.values), "mean": mean, "minimum": minimum}
            text = f"{name} of {setting.label}: {score}, minimum {minimum:g}{'' if passed else ': not reached'}"
            yield text, {**values, "passed": passed}
    if against is None:
        return
    for one in changes_since(results.matrix, Results.open(against, results.experiment).matrix, main):
        worse = one.difference.significantly_lower
        verdict = "worse" if worse else "not significantly worse"
        change = f"{one.difference} since {against}, n = {one.difference.n:,}: {verdict}"
        values = {"metric": main, "setting": dict(one.setting.values), "against": against}
        values |= {"difference": _difference_as_json(one.difference), "passed": not worse}
        yield f"{main} of {one.setting.label}: {change}", values


def check_metric(option: str, metric: str, experiment: Experiment) -> None:
    """Reject a metric by which settings cannot be compared, before any model is called."""
    check_better(metric)
    if metric not in experiment.metric_names:
        names = ", ".join(experiment.metric_names)
        raise OptionError(f"{option} must be a metric of the experiment: {names}; got {describe(metric)}", metric)


def _run(experiment: Experiment, path: Path, how: Running, *, measure: bool, ray: str | None) -> tuple[Plan, RunReport]:
    """Plan, ask for confirmation if the run costs money or exceeds a limit, and run.

    A new results file is removed if nothing is run.
    """
    opened = PreparedExperiment(experiment)
    is_new = not path.exists()

    def show(now: RunReport) -> None:
        progress.update(now.done, now.total, _progress_text(now, priced=bool(experiment.prices)))

    with redirect_stdout(sys.stderr):
        try:
            plan = plan_of(opened, path, retry_failed=how.retry_failed, keep=True)
            print_status(f"{plan.describe()}\nresults file: {path}")
            _confirm_cost(plan, experiment, yes=how.yes)
        except BaseException:
            for file in [path, Path(f"{path}-wal"), Path(f"{path}-shm")] if is_new else ():
                file.unlink(missing_ok=True)
            raise
        try:
            with WorkProgress() as progress:
                return plan, run(
                    opened, path, retry_failed=how.retry_failed, measure=measure, ray=ray, on_progress=show
                )
        except KeyboardInterrupt:
            told = "Interrupted. Finished calls are in the results file; run the same command to continue."
            print_status(told, "yellow")
            raise typer.Exit(EXIT_INTERRUPTED) from None


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
        spent = getattr(plan.spent, name) or 0
        if limit is not None and needed[name] and spent + needed[name] > limit:
            more = f"{spent:,.6g} spent already, about {needed[name]:,.6g} more needed"
            yield f"the limit of {limit:,} {name} is not enough: {more}"


def _progress_text(now: RunReport, *, priced: bool) -> str:
    """Describe the progress of a run on one line."""
    parts = [f"stopping, {now.running:,} calls in progress"] if now.outcome else []
    parts.append(f"{now.done:,}/{now.total:,} answers")
    if now.failed:
        parts.append(f"{sum(now.failed.values()):,} failed")
    if priced:
        parts.append(f"{money_text(now.spent.money)} spent")
    if now.spent.calls:
        parts += [f"{now.spent.calls:,} calls", f"{amount(now.spent.tokens)} tokens"]
    return ", ".join(parts)


def _print_next_steps(report: RunReport, results: Results, failures: Sequence[Failure]) -> None:
    """Print what failed, what is left to do, and how to continue."""
    if failures:
        print_status(f"{sum(one.count for one in failures):,} questions in cells failed:", "yellow")
        for one in failures:
            print_status(f"  {one.count:,} × {one.error}: {one.describe()}", "yellow")
        final, advice = BudgetError.__name__, []
        if any(one.error != final for one in failures):
            advice.append("Retry them with --retry-failed.")
        if any(one.error == final for one in failures):
            # Chunks or a prompt that do not fit never will.
            advice.append(f"A {final} would occur again: change the setting as its message says.")
        print_status(f"They are excluded from all means. {' '.join(advice)}", "yellow")
    for note, remedy in (
        (CUT_SHORT, "raise the model's max_tokens to have them regenerated"),
        (EMPTY, "a reasoning model may need a higher max_tokens"),
    ):
        if number := sum(setting.notes.get(note, 0) for setting in results.settings):
            print_status(f"{number:,} answers: {note}. They are scored unchanged; {remedy}.", "yellow")
    if report.outcome != "complete":
        left = f"{report.remaining:,} questions in cells are left"
        print_status(f"Stopped: {report.outcome}. {left}; run the same command to continue.", "yellow")
    print_status(f"Results: {results.path}")


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """Convert a plan to JSON values."""
    return asdict(plan) | {"limits": plan.limits.model_dump(), "calls": plan.calls, "money": plan.money}


def _print_json(results: Results, metric: str | None, axis: str, about: Mapping[str, Any]) -> None:
    """Print everything about a run and its results as JSON, with the differences along an axis."""
    scored = by_data([one for one in results.settings if metric in one.scores])
    ranks = metric is not None and bool(scored)
    ordered = [name for name in results.axes if name in ORDERED_AXES]
    echo_json(
        {
            "experiment": results.experiment,
            "results": str(results.path),
            "cores": list(results.matrix.cores),
            "settings": [_setting_as_json(setting) for setting in results.settings],
            "differences": [_pair_as_json(pair) for pair in results.differences(axis)],
            "metric": metric,
            "deploy": [dict(choose_economical(some, metric)[0].values) for some in scored.values() if metric],
            "verdicts": [asdict(verdict) for verdict in results.verdicts(metric)] if ranks else [],
            "curves": [_curve_as_json(one) for name in ordered if ranks for one in results.curves(name, metric)],
            **about,
        }
    )


def _setting_as_json(setting: SettingSummary) -> dict[str, Any]:
    return {
        "values": dict(setting.values),
        **{name: getattr(setting, name) for name in ("cells", "asked", "answered", "failed", "per_answer", "notes")},
        "scores": {metric: asdict(summary) for metric, summary in setting.scores.items()},
        "measurements": {name: asdict(summary) for name, summary in setting.measurements.items()},
    }


def _pair_as_json(pair: SettingDifference) -> dict[str, Any]:
    between = {"setting": dict(pair.setting.values), "baseline": dict(pair.baseline.values)}
    return {"metric": pair.metric, "axis": pair.axis, **between, "difference": _difference_as_json(pair.difference)}


def _difference_as_json(difference: Difference) -> dict[str, Any]:
    return asdict(difference) | {"excludes_zero": difference.excludes_zero, "significant": difference.significant}


def _curve_as_json(curve: Curve) -> dict[str, Any]:
    spot = curve.sweet_spot
    return {
        "axis": curve.axis,
        "values": dict(curve.values),
        "points": [point.values[curve.axis] for point in curve.points],
        "contenders": [point.values[curve.axis] for point in curve.contenders],
        "sweet_spot": None if spot is None else spot.values[curve.axis],
    }


def _print_tables(results: Results, metric: str | None, axis: str, *, everything: bool, measured: bool) -> None:
    """Print the first tables of the report and the verdicts; without a metric, no setting is ranked."""
    out = console()
    if metric is None:
        print_status("No metric with scores can rank the settings, so nothing is compared.")
    first, rest = tables.all_settings(results, metric, axis)
    _print_parts(first or rest, everything=everything)
    if metric in results.metrics:
        for verdict in results.verdicts(metric):
            out.print(f"{verdict.question} {safe(verdict.describe())}")
    if first and everything:
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
    widths = [max(map(len, [*title.split(), *(row[at] for row in rows)])) for at, title in enumerate(table.head)]
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
            style: Any = {"justify": "left" if left_aligned else "right", "no_wrap": number not in names}
            printed.add_column("\n".join(wrap(title, widths[number])), overflow="fold", **style)
        for row in rows:
            printed.add_row(*(safe(row[number]) for number in part))
        out.print(printed)
    if len(table.rows) > max_rows:
        out.print(f"{len(table.rows) - max_rows:,} more; --all prints all of them.")
