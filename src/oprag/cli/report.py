"""The command `oprag report`: writes the contents of a results file as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oprag.cli.console import print_status
from oprag.cli.options import MainMetric, Trust
from oprag.cli.run import trust_or_ask
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
            help="The experiment's TOML file; its data supplies the texts that a results file does not store."
        ),
    ] = None,
    trust: Trust = False,
    name: Annotated[
        str | None, typer.Option(help="The name of the experiment, if the results file contains several.")
    ] = None,
    metric: MainMetric = None,
) -> None:
    """Write the contents of RESULTS as one HTML file that works offline and loads nothing else."""
    from oprag.compare.report.write import REPORT, write_report

    path = Path(results)
    target = Path(output) if output is not None else path.with_suffix(".html")
    check_target(target, path, *([] if experiment is None else [experiment]), kind=REPORT)
    given: Any = None
    if experiment is not None:
        from oprag.compare.spec.experiment import Experiment

        given = Experiment.from_file(experiment, trust=trust_or_ask(trust))
        name = name or given.name
    write_report(path, target, experiment=name, metric=metric, documents=given)
    print_status(f"Report: {target}, {target.stat().st_size / 1e6:.1f} MB")
