"""The commands."""

from __future__ import annotations

from typing import Annotated

import typer

from oprag._version import __version__
from oprag.cli.ask import ask
from oprag.cli.compare import compare
from oprag.cli.context import context, map_
from oprag.cli.demo import demo
from oprag.cli.report import report
from oprag.cli.sweep import sweep

__all__ = ["app"]

app = typer.Typer(
    name="oprag",
    help="Order-preserving RAG: the passages that answer a question, in the order of the document.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(context)
app.command("map")(map_)
app.command()(ask)
app.command()(compare)
app.command()(report)
app.command()(sweep)
app.command()(demo)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"oprag {__version__}")
        raise typer.Exit
