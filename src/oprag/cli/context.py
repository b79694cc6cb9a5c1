"""The commands `oprag context` and `oprag map`: the context of a question, and where its chunks lie in the files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from oprag.assembly.stitch import Passage
from oprag.chunk import Span
from oprag.cli.console import console, echo_json
from oprag.cli.document_map import KEPT, DocumentMap, as_svg, map_of, strip
from oprag.cli.index import Sources, context_of, read_sources
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
from oprag.errors import OptionError
from oprag.files.writing import FileKind, begins_with, check_target, replacing
from oprag.masking import safe
from oprag.options import OP_RAG_16K, ContextOptions, check_question

__all__ = ["characters_of", "context", "map_", "place_of"]

_BEGINNING = b'<svg xmlns="http://www.w3.org/2000/svg" class="oprag-map"'
_MAP = FileKind("a map of oprag", lambda path: begins_with(path, _BEGINNING))

# What is kept in half of a cell or more, and in less; then reasons as they come; then what was not retrieved.
_BLOCKS = ("█", "▄", "▒░▚▪▫◆◇○", "·")
_ASCII = ("#", "=", "xo%+*@&$", ".")
_STYLES = ("green", "yellow", "blue", "red", "magenta", "cyan", "bright_yellow", "bright_blue")


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


@typed_options("options", ContextOptions, defaults=OP_RAG_16K)
@typed_options("indexed", Indexing)
def map_(
    options: TypedOptions,
    indexed: TypedOptions,
    files: Files,
    question: Question,
    profile: ProfilePath = None,
    svg: Annotated[
        str | None, typer.Option(help="Write the map to this file as well, as an SVG picture.", rich_help_panel=OUTPUT)
    ] = None,
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """Show where in FILES the passages lie that fit a QUESTION, and where those that were dropped.

    Keeps what `oprag context` keeps, but retrieves twice as many chunks: the second half, dropped by max_candidates,
    is what came close.
    """
    check_question(question)
    if svg is not None:
        check_target(svg, *files, *([] if profile is None else [profile]), kind=_MAP)
    context_options, indexing = context_options_of(options, profile), indexed.value()
    sources = read_sources(files, indexing)
    result = context_of(question, sources, context_options, indexing, beyond=True)
    lengths = _lengths_of(sources)
    chart = map_of(result, lengths)
    if svg is not None:
        _write_svg(svg, chart, question)
    if as_json:
        echo_json({"question": question, **result.to_dict(), "lengths": lengths})
        return
    _show_map(chart)
    if explain:
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


def _lengths_of(sources: Sources) -> dict[str, int | list[int]]:
    """The characters of each source, or of each of its pages."""
    return {name: len(text) if isinstance(text, str) else [*map(len, text)] for name, text in sources.items()}


def _show_map(chart: DocumentMap) -> None:
    """Print a strip for each source, as wide as the terminal, and a legend."""
    out = console()
    kept, part, dropped, nothing = _ASCII if out.options.ascii_only else _BLOCKS
    reasons = [state for state in chart.states if state != KEPT]
    glyphs = {KEPT: kept, "": nothing} | {reason: dropped[n % len(dropped)] for n, reason in enumerate(reasons)}
    styles = {KEPT: _STYLES[0], "": "dim"} | {
        reason: _STYLES[1 + n % (len(_STYLES) - 1)] for n, reason in enumerate(reasons)
    }
    for row in chart.rows:
        pages = f"{len(row.pages):,} pages, " if row.pages else ""
        name = safe(row.source).replace("\n", " ")
        out.print(Text.assemble((name, "bold"), f"  {pages}{row.length:,} characters"))
        line = Text()
        for state, half in strip(row, chart.states, out.width):
            line.append(part if state == KEPT and not half else glyphs[state], styles[state])
        out.print(line)
    covered, length = chart.covered(), chart.length or 1
    for state in (*chart.states, ""):
        text = _legend(state, chart.counts.get(state, 0), covered[state] / length)
        if state == KEPT:
            text += f" ({part} where it is less than half)"
        out.print(Text.assemble((glyphs[state], styles[state]), f" {text}"))
    if chart.unplaced:
        out.print(f"{chart.unplaced:,} retrieved chunks have no place in these documents")


def _legend(state: str, count: int, share: float) -> str:
    if not state:
        return f"not retrieved: {share:.1%} of the text"
    chunks = "1 chunk" if count == 1 else f"{count:,} chunks"
    return f"{state if state == KEPT else f'dropped by {state}'}: {chunks}, {share:.1%} of the text"


def _write_svg(name: str, chart: DocumentMap, question: str) -> None:
    """Write the map as a picture.

    Raises:
        OptionError: The file cannot be written.
    """
    try:
        with replacing(Path(name)) as file:
            file.write(as_svg(chart, question).encode("utf-8", "replace"))
    except OSError as error:
        raise OptionError(f"cannot write {name}: {error.strerror or error}", name) from error
