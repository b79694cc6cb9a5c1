"""The command `oprag context`: the context of a question."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from oprag.assembly.stitch import Passage
from oprag.chunk import Span
from oprag.cli.console import console, echo_json
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
from oprag.masking import safe
from oprag.options import OP_RAG_16K, ContextOptions, check_question

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
            help="Print the context alone, as a model would read it; cleaned of control characters on a terminal.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    explain: Explain = False,
) -> None:
    """Print the passages of FILES that fit a QUESTION, in the order of the document."""
    check_question(question)
    context_options = context_options_of(options, profile)
    indexing = indexed.value()
    result = context_of(question, read_sources(files, indexing), context_options, indexing)
    if as_json:
        echo_json({"question": question, **result.to_dict()})
    elif raw:
        # A terminal would obey escape sequences; a program gets the text as it is, which `color` asks for.
        typer.echo(safe(result.text) if sys.stdout.isatty() else result.text, color=True)
    else:
        _show_context(result)
    if explain and not as_json:
        typer.echo(f"\n{result.explain()}")


def _show_context(context: Context) -> None:
    """Print the passages in order, each under its source and span."""
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
    """Source, characters and ranks of a passage, on one line."""
    where = safe(passage.source or "(unknown source)").replace("\n", " ")
    if passage.spans:
        where += f"  {characters_of(passage.spans[0], passage.spans[-1])}"
    ranks = sorted(chunk.rank for chunk in passage.chunks)
    return f"{where}  {'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def characters_of(first: Span, last: Span | None = None) -> str:
    """Which characters a span has, or those from one span to another, and of which page."""
    last = last or first
    if first.page != last.page:
        return f"page {first.page}, character {first.start:,}, to page {last.page}, character {last.end:,}"
    page = "" if first.page is None else f"page {first.page}, "
    return safe(f"{page}characters {first.start:,}–{last.end:,}")
