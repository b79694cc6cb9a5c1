"""The commands `oprag compare` and `oprag sweep`, which run an experiment and print its results, and `oprag report`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from oprag._internal.masking import describe, reason
from oprag.cli.console import echo_json, print_status
from oprag.cli.options import LIMITS, MODEL, OUTPUT, Indexing, Running, declare, typed_options
from oprag.errors import ExperimentError, InputFileError, OpragError, OptionError
from oprag.index.tokenizers import LOCAL

if TYPE_CHECKING:
    from oprag.compare.experiment import Experiment

__all__ = ["compare", "read_experiment", "report", "sweep"]

_COVERAGE = "Without --model, contexts are scored by the evidence in them, of which more text never contains less."
_METRIC = declare(
    "The main metric. Default: the first metric that has scores and for which higher is better.", panel=OUTPUT
)


@typed_options(running=Running)
def compare(
    *,
    file: str = typer.Argument(help="The TOML file of the experiment, or PYTHON_FILE:NAME of an Experiment."),
    results_file: str | None = declare("The results file. Default: FILE with the suffix .db.", "--results"),
    plan: bool = declare("Print the planned work and its cost, then stop.", "--plan", default=False),
    sample: int | None = declare(
        "Pilot run: ask only this many questions of each data set. Run the same command without it to ask the rest.",
        min=1,
    ),
    measure: bool = declare(
        "Measure time, CPU and memory of each new answer; questions are answered one at a time.",
        "--measure",
        default=False,
    ),
    ray: str | None = declare("The address of a Ray cluster to run on; local starts one on this machine."),
    limit_money: float | None = declare("Maximum cost of model calls over all runs.", min=0, panel=LIMITS),
    axis: str = declare(
        "The axis whose values are compared; the first value is the baseline.",
        "--compare-axis",
        default="order",
        panel=OUTPUT,
    ),
    metric: str | None = _METRIC,
    csv: str | None = declare("Also write a CSV file with one row per setting.", metavar="FILE", panel=OUTPUT),
    profile: str | None = declare(
        "Write the setting to deploy to this file, for from_profile.", "--write-profile", metavar="FILE", panel=OUTPUT
    ),
    fail_under: list[str] | None = declare(
        "Exit with 1 if the setting to deploy scores less; may be repeated.", metavar="METRIC=VALUE", panel=OUTPUT
    ),
    against: str | None = declare(
        "Exit with 1 if a setting scores significantly less than in this earlier results file.",
        metavar="FILE",
        panel=OUTPUT,
    ),
    running: dict[str, Any],
) -> None:
    """Run the experiment in FILE, resuming earlier runs, and print a table of its results.

    Exits with 0 when every question has an answer in every setting; until then, the same command continues the run.
    Limits given on the command line replace those in FILE.
    """
    from oprag.cli.run import check_compared, check_metric, minimum_of, plan_as_json, plan_of, run_and_print
    from oprag.compare.db.results_file import ResultsReader

    how = Running(**running)
    if measure and ray is not None:
        raise OptionError("--measure runs on this machine; remove --ray", ray)
    minima = [minimum_of(one) for one in fail_under or ()]
    with redirect_stdout(sys.stderr):
        experiment, place = read_experiment(file, how.changes(money=limit_money))
        experiment = experiment.replace(data={name: one.sample(sample) for name, one in experiment.data.items()})
    check_compared(axis, experiment)
    path = Path(results_file) if results_file is not None else place.with_suffix(".db")
    for name, _ in minima:
        check_metric("--fail-under", name, experiment)
    if against is not None:
        if not Path(against).is_file():
            raise InputFileError(f"file not found: {against}", against)
        with ResultsReader.open(against, experiment.name):
            pass  # refused before the run, not after it
    if plan:
        planned = plan_of(experiment, path, retry_failed=how.retry_failed)
        echo_json(plan_as_json(planned)) if how.as_json else typer.echo(planned.describe())
        return
    run_and_print(
        *(experiment, path, how, metric),
        read=[place],
        csv=csv,
        profile=profile,
        axis=axis,
        measure=measure,
        ray=ray,
        minima=minima,
        against=against,
    )


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


@typed_options(indexed=Indexing, running=Running)
def sweep(
    *,
    indexed: dict[str, Any],
    data: str = typer.Argument(
        help="A folder or file of questions; with --questions, the document that they are about."
    ),
    questions: str | None = declare(
        "Questions about the document DATA: JSON lines with question, answers and evidence."
    ),
    format: str = declare(  # noqa: A002 - what everyone calls it
        "The format of the questions; docs/reference/data_formats.md lists all formats.", default="oprag"
    ),
    sample: int | None = declare("Number of questions to sample at random. Default: all.", min=1),
    budgets: str | None = declare(
        "Token budgets of the context, comma-separated. Default: 1,024 to 49,152 in eight steps, without those smaller "
        "than a chunk and those beyond the documents."
    ),
    orders: str = declare("Orders, comma-separated.", default="source,rank,random"),
    continuity: str = declare("Values of continuity, comma-separated, such as 0,0.3.", default="0"),
    model: str | None = declare(
        "The model that answers: local or PROVIDER:MODEL. Without a model, only the contexts are scored, by the "
        "evidence that they contain.",
        panel=MODEL,
    ),
    metric: str | None = declare("The metric to score. Default: one that suits the questions.", panel=MODEL),
    results: str = declare("The results file; rerun the same command to resume.", default="sweep.db"),
    profile: str = declare(
        "The file to write the setting to deploy to, for from_profile; none writes no file.",
        "--write-profile",
        default="oprag.toml",
    ),
    running: dict[str, Any],
) -> None:
    """Answer questions with each token budget and order, and find the best setting.

    Runs an experiment like oprag compare, with the same output and exit codes, and writes the setting to deploy to a
    profile.
    """
    from oprag.cli.run import run_and_print
    from oprag.compare.data.read import read_data
    from oprag.compare.sweep import sweep_experiment

    how = Running(**running)
    grid: dict[str, Any] = {
        "order": [one.strip() for one in orders.split(",")],
        "continuity": _listed("continuity", continuity, float, "numbers such as 0,0.3"),
        "token_budget": budgets and _listed("budgets", budgets, int, "numbers of tokens such as 1024,16384"),
        **indexed,
    }
    embedder = grid.pop("embeddings", LOCAL)
    others: dict[str, Any] = {} if metric is None else {"metrics": list(dict.fromkeys([metric, "evidence_coverage"]))}
    with redirect_stdout(sys.stderr):
        data_set = read_data(data, format) if questions is None else read_data(questions, format, documents=data)
        experiment = sweep_experiment(
            data_set if sample is None else data_set.sample(min(sample, len(data_set.questions))),
            grid={name: value for name, value in grid.items() if value is not None},
            models={} if model is None else {model: model},
            embedders={embedder: embedder},
            **how.changes(),
            **others,
        )
    run_and_print(
        *(experiment, Path(results), how, metric),
        profile=None if profile == "none" else profile,
        note=_COVERAGE if model is None else "",
    )


def _listed(name: str, given: str, convert: Callable[[str], float], what: str) -> list[float]:
    try:
        return [convert(one.strip()) for one in given.split(",")]
    except ValueError:
        raise OptionError(f"{name} must be {what}, got {describe(given)}", given) from None


def report(
    *,
    results: str = typer.Argument(help="A results file written by oprag compare."),
    output: str | None = declare("The HTML file. Default: RESULTS with the suffix .html.", "--output", "-o"),
    name: str | None = declare("The name of the experiment, if the results file contains several."),
    metric: str | None = _METRIC,
) -> None:
    """Write the contents of RESULTS as one HTML file that works offline and loads nothing else."""
    from oprag.compare.report.write import write_report

    path = Path(results)
    target = Path(output) if output is not None else path.with_suffix(".html")
    write_report(path, target, experiment=name, metric=metric)
    print_status(f"Report: {target}, {target.stat().st_size / 1e6:.1f} MB")
