"""The commands `oprag compare`, which runs an experiment and prints its results, and `oprag report`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oprag._internal.files.writing import check_target
from oprag._internal.masking import describe, reason
from oprag.cli.console import EXIT_INCOMPLETE, echo_json, print_status
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
from oprag.errors import ExperimentError, InputFileError, OpragError, OptionError

if TYPE_CHECKING:
    from oprag.compare.experiment import Experiment
    from oprag.compare.results import Results

__all__ = ["compare", "read_experiment", "report"]


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
            rich_help_panel=OUTPUT,
        ),
    ] = "order",
    metric: MainMetric = None,
    everything: Everything = False,
    csv: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write a CSV file with one row per setting.", rich_help_panel=OUTPUT),
    ] = None,
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
    from oprag.cli.run import check_metric, finish, plan_and_run, plan_of, stdout_to_stderr
    from oprag.cli.tables import plan_as_json
    from oprag.compare.data.data_set import files_of
    from oprag.compare.export import CSV
    from oprag.compare.grid import check_axis

    check_axis(compare_axis)
    if measure and ray is not None:
        raise OptionError("--measure runs on this machine; remove --ray", ray)
    limits = {"calls": limit_calls, "tokens": limit_tokens, "money": limit_money}
    changes: dict[str, Any] = {"limits": {name: limit for name, limit in limits.items() if limit is not None}}
    if max_concurrency is not None:
        changes["max_concurrency"] = max_concurrency
    minima = [_minimum(one) for one in fail_under or ()]
    with stdout_to_stderr():
        experiment, place = read_experiment(file, changes)
        experiment = experiment.replace(data={name: one.sample(sample) for name, one in experiment.data.items()})
        path = Path(results_file) if results_file is not None else place.with_suffix(".db")
        check_metric(metric, experiment)
        from oprag.methods.profile import PROFILE

        for target, kind in ((csv, CSV), (profile, PROFILE)):
            if target is not None:
                check_target(target, place, path, *files_of(experiment.data), kind=kind)
        if against is not None and not Path(against).is_file():
            raise InputFileError(f"file not found: {against}", against)
    if plan:
        planned = plan_of(experiment, path, retry_failed=retry_failed)
        echo_json(plan_as_json(planned)) if as_json else typer.echo(planned.describe())
        return
    done = plan_and_run(experiment, path, yes=yes, retry_failed=retry_failed, measure=measure, ray=ray)
    _, _, results = done
    if csv is not None:
        results.to_csv(csv)
        print_status(f"CSV: {csv}")
    finish(done, metric, profile=profile, axis=compare_axis, everything=everything, as_json=as_json, measured=measure)
    if not all([*_reached(results, minima), *_not_worse(results, against, metric)]):
        raise typer.Exit(EXIT_INCOMPLETE)


def read_experiment(given: str, changes: Mapping[str, Any] | None = None) -> tuple[Experiment, Path]:
    """Read an experiment from a TOML file or PYTHON_FILE:NAME; return it with some values changed, and its file."""
    from oprag.compare.experiment import Experiment

    file, _, name = given.rpartition(":")
    if given.endswith(".py"):
        raise ExperimentError(f"name the variable with the experiment, such as {given}:experiment", given)
    path = Path(file if file.endswith(".py") else given)
    experiment = getattr(_module(path), name, None) if file.endswith(".py") else Experiment.from_file(path)
    if not isinstance(experiment, Experiment):
        raise ExperimentError(f"{file} has no Experiment named {name!r}, got {describe(experiment)}", experiment)
    changed = {
        key: {**getattr(experiment, key).model_dump(), **value} if isinstance(value, Mapping) else value
        for key, value in (changes or {}).items()
    }
    return experiment.replace(**changed), path


def _module(path: Path) -> Any:
    """Run a Python file as the module of its name, as `import` in its folder would."""
    if not path.is_file():
        raise InputFileError(f"file not found: {path}", str(path))
    sys.path.insert(0, str(path.parent.resolve()))
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ExperimentError(f"{path} cannot be imported", str(path))
    # Registered, so that its functions have the same name in every process.
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OpragError:
        raise
    except Exception as error:
        raise ExperimentError(f"{path} cannot be imported: {reason(error)}", str(path)) from error
    return module


def _minimum(given: str) -> tuple[str, float]:
    """Read METRIC=VALUE."""
    from oprag.compare.metrics.registry import check_better

    name, _, number = (one.strip() for one in given.partition("="))
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name or not math.isfinite(value):
        raise OptionError(f"--fail-under must be METRIC=VALUE, such as token_f1=0.4, got {describe(given)}", given)
    check_better(name)
    return name, value


def _reached(results: Results, minima: Sequence[tuple[str, float]]) -> Iterator[bool]:
    """Print whether the setting to deploy reaches each minimum score, and yield it."""
    for metric, minimum in minima:
        setting = results.deployed(metric)
        mean = setting.scores[metric].mean or 0.0
        status = "" if mean >= minimum else ": not reached"
        print_status(f"{metric} of {results.label(setting)}: {mean:.3f}, minimum {minimum:g}{status}")
        yield mean >= minimum


def _not_worse(results: Results, against: str | None, metric: str | None) -> Iterator[bool]:
    """Print how each setting compares with an earlier results file, and yield whether it is not worse."""
    from oprag.compare.analysis.differences import changes_since
    from oprag.compare.results import Results

    if against is None:
        return
    name = results.ranking_metric(metric)
    old = Results.open(against, results.experiment)
    for one in changes_since(results.matrix, old.matrix, name):
        worse = one.difference.significantly_lower
        verdict = "worse" if worse else "not significantly worse"
        change = f"{one.difference} since {against}, n = {one.difference.n:,}: {verdict}"
        print_status(f"{name} of {results.label(one.setting)}: {change}")
        yield not worse


def report(
    results: Annotated[str, typer.Argument(help="A results file written by oprag compare.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The HTML file. Default: RESULTS with the suffix .html.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the experiment, if the results file contains several.")
    ] = None,
    metric: MainMetric = None,
) -> None:
    """Write the contents of RESULTS as one HTML file that works offline and loads nothing else."""
    from oprag.compare.report.write import write_report

    path = Path(results)
    target = Path(output) if output is not None else path.with_suffix(".html")
    write_report(path, target, experiment=name, metric=metric)
    print_status(f"Report: {target}, {target.stat().st_size / 1e6:.1f} MB")
