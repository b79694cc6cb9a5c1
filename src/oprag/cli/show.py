"""Contexts on a terminal."""

from __future__ import annotations

from functools import cache

from rich.console import Console
from rich.text import Text

from oprag.assembly.stitch import Passage
from oprag.chunk import Span
from oprag.context import Context
from oprag.masking import safe

__all__ = ["characters_of", "console", "error_console", "money", "place_of", "show_context"]


def console() -> Console:
    """Standard output; document text is never read as markup."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


@cache
def error_console() -> Console:
    """Standard error, for progress, warnings and errors."""
    return Console(stderr=True)


def show_context(context: Context) -> None:
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


def money(amount: float) -> str:
    """An amount in whatever currency, with two digits that say something."""
    return f"{amount:,.2f}" if amount >= 0.1 or not amount else f"{amount:.2g}"
