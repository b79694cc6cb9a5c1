"""The command `oprag sweep`: finds the best token budget and order for a set of questions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oprag.cli.console import EXIT_INCOMPLETE, echo_json, print_status
from oprag.cli.options import (
    MODEL,
    AsJson,
    Everything,
    Indexing,
    LimitCalls,
    LimitTokens,
    MaxConcurrency,
    RetryFailed,
    TypedOptions,
    Yes,
    metric_names,
    typed_options,
)
from oprag.cli.run import leave, plan_and_run, print_next_steps, stdout_to_stderr
from oprag.errors import ExperimentError, OptionError
from oprag.files.writing import check_target
from oprag.masking import describe
from oprag.methods.registry import method_names
from oprag.profile import FILE_NAME, PROFILE, write_profile

if TYPE_CHECKING:
    from oprag.compare.running.run import RunReport
    from oprag.compare.spec.experiment import Experiment
    from oprag.compare.sweep.result import Sweep

__all__ = ["sweep"]

_NONE = "none"
_COVERAGE = "More text never contains less evidence; to see how a model copes with more text, run a sweep with --model"


def _format_names() -> tuple[str, ...]:
    from oprag.compare.data.formats import FORMATS

    return tuple(FORMATS)


@typed_options("indexed", Indexing)
def sweep(
    indexed: TypedOptions,
    data: Annotated[
        str, typer.Argument(help="A folder or file of questions; with --questions, the document that they are about.")
    ],
    questions: Annotated[
        str | None,
        typer.Option(help="Questions about the document DATA: JSON lines with question, answers and evidence."),
    ] = None,
    format: Annotated[  # noqa: A002 - what everyone calls it
        str,
        typer.Option(
            help="The format of the questions; docs/reference/data_formats.md lists all formats.",
            autocompletion=_format_names,
        ),
    ] = "oprag",
    sample: Annotated[
        int | None, typer.Option(min=1, help="Number of questions to sample at random. Default: all.")
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Token budgets of the context, comma-separated; 1k is 1,024. Default: 1k to 48k in eight steps."
        ),
    ] = None,
    orders: Annotated[str, typer.Option(help="Orders, comma-separated.")] = "source,rank,random",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds for the order random.")] = 3,
    continuity: Annotated[str, typer.Option(help="Values of continuity, comma-separated, such as 0,0.3.")] = "0",
    model: Annotated[
        str | None,
        typer.Option(
            help="The model that answers: local or PROVIDER:MODEL. Without a model, only the contexts are scored, by "
            "the evidence that they contain.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="The answer method. Default: stuff.",
            autocompletion=method_names,
            rich_help_panel=MODEL,
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The metric to score. Default: one that suits the questions.",
            autocompletion=metric_names,
            rich_help_panel=MODEL,
        ),
    ] = None,
    results: Annotated[str, typer.Option(help="The results file; rerun the same command to resume.")] = "sweep.db",
    profile: Annotated[
        str,
        typer.Option(
            "--write-profile",
            help="The file to write the chosen setting to, for from_profile; none writes no file.",
        ),
    ] = FILE_NAME,
    yes: Yes = False,
    retry_failed: RetryFailed = False,
    max_concurrency: MaxConcurrency = 8,
    limit_calls: LimitCalls = None,
    limit_tokens: LimitTokens = None,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Answer questions with each token budget and order, and find the best setting.

    Prints the score of each setting, reports where the curve of each order peaks or that it is flat, and writes the
    chosen setting to a profile. Exit codes are those of oprag compare; a budget too small for any chunk does not count
    as a failure.
    """
    from oprag.compare.data.read import read_data
    from oprag.compare.running.resolved import ResolvedExperiment
    from oprag.compare.sweep.experiment import sweep_experiment
    from oprag.compare.sweep.result import Sweep

    indexing: Indexing = indexed.value()
    chosen_budgets = {} if budgets is None else {"budgets": budgets.split(",")}
    if profile != _NONE:
        read = [results, data] if questions is None else [results, data, questions]
        check_target(profile, *read, kind=PROFILE, advice="name another file with --write-profile, or none")
    with stdout_to_stderr():
        data_set = read_data(data, format) if questions is None else read_data(questions, format, documents=data)
        data_set = data_set if sample is None else data_set.sample(min(sample, len(data_set.questions)))
        experiment = sweep_experiment(
            data_set,
            **chosen_budgets,
            orders=[part.strip() for part in orders.split(",")],
            seeds=seeds,
            continuity=[_number(part) for part in continuity.split(",")],
            model=model,
            method=method,
            metric=metric,
            embedder=indexing.embeddings,
            grid=_grid(indexing),
            limits={"calls": limit_calls, "tokens": limit_tokens},
            max_concurrency=max_concurrency,
        )
    path = Path(results)
    _, report = plan_and_run(ResolvedExperiment(experiment), path, yes=yes, retry_failed=retry_failed)
    report = Sweep.settled(report)
    found = _found(path, experiment, report)
    deployed = report.complete and profile != _NONE
    replaced = deployed and Path(profile).is_file()
    if deployed:
        # Write before printing: the program at the end of the pipe may close it after the first lines.
        write_profile(found.profile, profile)
    _show(found, path, everything=everything, as_json=as_json)
    print_next_steps(experiment.name, path, report)
    if deployed:
        print_status(f"Profile: {profile}{', replaced' if replaced else ''}")
    elif profile != _NONE:
        print_status("No profile was written, because some questions have no answer yet.", "yellow")
    leave(report)


def _number(typed: str) -> float:
    try:
        return float(typed)
    except ValueError:
        raise OptionError(f"continuity must be numbers such as 0,0.3, got {describe(typed)}", typed) from None


def _grid(indexing: Indexing) -> dict[str, Any]:
    names = ("splitter", "chunk_size", "chunk_overlap", "search")
    return {name: value for name in names if (value := getattr(indexing, name)) is not None}


def _found(path: Path, experiment: Experiment, report: RunReport) -> Sweep:
    from oprag.compare.sweep.result import read_sweep

    try:
        return read_sweep(path, experiment.name, experiment.metric_names[0])
    except ExperimentError as error:
        # Print what failed or stopped the run: the cause of this error.
        print_next_steps(experiment.name, path, report)
        print_status(f"Error: {error}", "red")
        leave(report)
        raise typer.Exit(EXIT_INCOMPLETE) from error


def _show(found: Sweep, path: Path, *, everything: bool, as_json: bool) -> None:
    pairs = found.points.differences("order", [found.metric])
    if as_json:
        from oprag.cli.tables import curve_as_json, difference_as_json, setting_as_json

        echo_json(
            {
                "results": str(path),
                "metric": found.metric,
                "settings": [setting_as_json(setting) for setting in found.results.settings],
                "curves": [curve_as_json(curve) for curve in found.curves],
                "impossible": [setting_as_json(setting) for setting in found.impossible],
                "remarks": found.remarks,
                "differences": [difference_as_json(pair) for pair in pairs],
                "chosen": dict(found.chosen.values),
                "reason": found.reason,
                "profile": asdict(found.profile),
            }
        )
        return
    from oprag.cli.tables import show_section, show_settings, show_verdicts
    from oprag.compare.analysis.verdicts import ORDER
    from oprag.compare.report import differences, settings

    show_settings(found.points, found.metric, pairs, everything=everything)
    # Only the verdict on order: the curves cover the token budget, and a sweep has no prices.
    show_verdicts([one for one in found.points.verdicts(found.metric) if one.question == ORDER])
    if everything:
        show_section(settings.section(found.results, found.metric))
        show_section(differences.section(found.results, found.metric))
    for orders, conclusion in found.conclusions.items():
        typer.echo(f"{', '.join(orders)}: {conclusion}")
    for remark in found.remarks:
        typer.echo(f"{remark}.")
    if found.metric == "evidence_coverage":
        typer.echo(f"{_COVERAGE}.")
    values = found.chosen.values
    near = f", continuity={values['continuity']}" if values.get("continuity") else ""
    typer.echo(f"chosen: order={values['order']}{near}, token_budget={values['token_budget']:,}: {found.reason}")
