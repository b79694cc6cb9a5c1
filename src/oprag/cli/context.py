"""The command `oprag context`: prints the context for a question."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from oprag.assembly.stitch import Passage
from oprag.chunk import Span
from oprag.cli.console import NAME_WIDTH, console, echo_json
from oprag.cli.index import context_of, read_sources
from oprag.cli.options import (
    OUTPUT,
    AsJson,
    Explain,
    Files,
    Indexing,
    ProfilePath,
    Question,
    TypedOptions,
    context_options_of,
    typed_options,
)
from oprag.context import Context
from oprag.masking import safe, shown
from oprag.options import OP_RAG_16K, ContextOptions, check_question
from oprag.text_table import one_line

__all__ = ["characters_of", "context", "place_of"]


@typed_options("options", ContextOptions, defaults=OP_RAG_16K)
@typed_options("indexed", Indexing)
def context(
    options: TypedOptions,
    indexed: TypedOptions,
    files: Files,
    question: Question,
    profile: ProfilePath = None,
    as_json: AsJson = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Print only the context text, as a model would read it; on a terminal, without control characters.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    explain: Explain = False,
) -> None:
    """Print the passages of FILES that are relevant to QUESTION, in document order."""
    check_question(question)
    context_options = context_options_of(options, profile)
    indexing = indexed.value()
    result = context_of(question, read_sources(files, indexing), context_options, indexing)
    if as_json:
        echo_json({"question": question, **result.to_dict()})
    elif raw:
        # A terminal would interpret escape sequences. A program gets the text unchanged (`color` turns stripping off).
        typer.echo(safe(result.text) if sys.stdout.isatty() else result.text, color=True)
    else:
        _show_context(result)
    if explain and not as_json:
        typer.echo(f"\n{result.explain()}")


def _show_context(context: Context) -> None:
    """Print the passages in order, each below its source and character span."""
    out = console()
    for number, passage in enumerate(context.passages, 1):
        out.print(f"── {number}  {place_of(passage)}", style="bold")
        out.print(Text(safe(passage.text.strip("\n"))))
    approximate = " (approximation)" if context.tokens_are_approximate else ""
    out.print(
        f"── {len(context.kept)} chunks in {len(context.passages)} passages, {context.tokens:,} tokens{approximate}, "
        f"order {context.options.order}, {len(context.dropped)} dropped",
        style="bold",
    )


def place_of(passage: Passage) -> str:
    """Return the source, character spans and ranks of a passage on one line."""
    where = one_line(safe(shown(passage.source or "(unknown source)", NAME_WIDTH)))
    if passage.spans:
        where += f"  {characters_of(passage.spans[0], passage.spans[-1])}"
    ranks = sorted(chunk.rank for chunk in passage.chunks)
    return f"{where}  {'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def characters_of(first: Span, last: Span | None = None) -> str:
    """Describe the character range, with pages, of a span or from one span to another."""
    last = last or first
    if first.page != last.page:
        return f"page {first.page}, character {first.start:,}, to page {last.page}, character {last.end:,}"
    page = "" if first.page is None else f"page {first.page}, "
    return safe(f"{page}characters {first.start:,}–{last.end:,}")
