"""The command-line application: registers the commands and handles their errors."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from oprag._version import __version__
from oprag.cli.ask import ask
from oprag.cli.check import check
from oprag.cli.compare import compare, report, sweep
from oprag.cli.console import errors_on_one_line
from oprag.cli.demo import demo
from oprag.cli.mcp import mcp
from oprag.cli.options import declare

__all__ = ["app"]


class _Commands(TyperGroup):
    """A command group that prints each error on one line and uses the same exit codes for all commands."""

    def invoke(self, ctx: Any) -> Any:
        with errors_on_one_line():
            return super().invoke(ctx)


app = typer.Typer(
    name="oprag",
    cls=_Commands,
    help="Order-preserving RAG: find the passages that answer a question and keep them in document order.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for _panel, _commands in (("Your documents", (ask, check, demo, mcp)), ("Experiments", (compare, report, sweep))):
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)


@app.callback(invoke_without_command=True)
def _root(*, version: bool = declare("Print the version.", "--version", default=False)) -> None:
    if version:
        typer.echo(f"oprag {__version__}")
        raise typer.Exit
