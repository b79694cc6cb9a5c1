"""The commands."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from oprag._version import __version__
from oprag.assembly import OP_RAG_16K
from oprag.build import build_context
from oprag.cli.demo import QUESTION, show_demo
from oprag.cli.options import AssemblyOptions, assembly_options
from oprag.cli.reading import read_sources
from oprag.cli.show import error_console, safe, show_context
from oprag.cli.working import embed_sources
from oprag.errors import OpragError, OpragWarning, OptionError
from oprag.question import check_question

__all__ = ["app"]

app = typer.Typer(
    name="oprag",
    help="Order-preserving RAG: the passages that answer a question, in the order of the document.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@assembly_options(**OP_RAG_16K)
def context(
    options: AssemblyOptions,
    files: Annotated[list[str], typer.Argument(help="Text or Markdown files, UTF-8; - reads standard input.")],
    question: Annotated[str, typer.Argument(help="The question.")],
    chunk_size: Annotated[int, typer.Option(help="Tokens in a chunk.")] = 128,
    chunk_overlap: Annotated[int, typer.Option(help="Tokens that neighbouring chunks share.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known as JSON.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the context alone, as a model would read it.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print as well what was kept, what was dropped and why.")
    ] = False,
) -> None:
    """Print the passages of FILES that fit a QUESTION, in the order of the document."""
    with _clear_errors():
        check_question(question)
        assembly = options.assembly()
        index = embed_sources(read_sources(files), chunk_size, chunk_overlap)
        result = build_context(index.search(question, assembly.fetch_k or assembly.k or len(index)), assembly)
        if as_json:
            typer.echo(json.dumps({"question": question, **result.to_dict()}, ensure_ascii=False, indent=2))
        elif raw:
            typer.echo(result.text)
        else:
            show_context(result)
        if explain and not as_json:
            typer.echo(f"\n{result.explain()}")


@app.command()
def demo(question: Annotated[str, typer.Argument(help="The question.")] = QUESTION) -> None:
    """Ask the Python language reference, which comes with Python, and compare source order with rank order."""
    with _clear_errors():
        check_question(question)
        show_demo(question)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"oprag {__version__}")
        raise typer.Exit


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Print errors and warnings of this package as one line each, in place of a traceback."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OpragWarning)
        try:
            yield
        except OpragError as error:
            _tell(f"Error: {error}", "red")
            raise typer.Exit(2 if isinstance(error, OptionError) else 1) from error
        finally:
            for warning in caught:
                if issubclass(warning.category, OpragWarning):
                    _tell(f"Warning: {warning.message}", "yellow")


def _tell(message: str, style: str) -> None:
    error_console().print(safe(message), style=style, markup=False, highlight=False, soft_wrap=True)
