"""The command `oprag report`: writes the contents of a results file as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oprag.cli.console import print_status
from oprag.cli.experiments import read_experiment
from oprag.cli.options import MainMetric
from oprag.files.writing import check_target

__all__ = ["report"]


def report(
    results: Annotated[str, typer.Argument(help="A results file written by oprag compare.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The HTML file. Default: RESULTS with the suffix .html.")
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            help="The experiment, as for oprag compare; its data supplies the texts that a results file does not store."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the experiment, if the results file contains several.")
    ] = None,
    metric: MainMetric = None,
) -> None:
    """Write the contents of RESULTS as one HTML file that works offline and loads nothing else."""
    from oprag.compare.report.write import REPORT, write_report

    path = Path(results)
    target = Path(output) if output is not None else path.with_suffix(".html")
    check_target(target, path, kind=REPORT)
    given: Any = None
    if experiment is not None:
        given, place = read_experiment(experiment)
        check_target(target, place, kind=REPORT)
        name = name or given.name
    write_report(path, target, experiment=name, metric=metric, documents=given)
    print_status(f"Report: {target}, {target.stat().st_size / 1e6:.1f} MB")
