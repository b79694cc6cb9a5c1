"""The map of a document on a terminal, and as a file."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from oprag.cli.reading import Sources
from oprag.cli.show import console
from oprag.compare.document_map import KEPT, DocumentMap, as_svg, strip
from oprag.errors import OptionError
from oprag.files.writing import FileKind, begins_with, replacing
from oprag.masking import safe

__all__ = ["MAP", "lengths_of", "show_map", "write_svg"]

_BEGINNING = b'<svg xmlns="http://www.w3.org/2000/svg" class="oprag-map"'
MAP = FileKind("a map of oprag", lambda path: begins_with(path, _BEGINNING))
"""What a map is, as a file."""

# What is kept in half of a cell or more, and in less; then reasons as they come; then what was not retrieved.
_BLOCKS = ("█", "▄", "▒░▚▪▫◆◇○", "·")
_ASCII = ("#", "=", "xo%+*@&$", ".")
_STYLES = ("green", "yellow", "blue", "red", "magenta", "cyan", "bright_yellow", "bright_blue")


def lengths_of(sources: Sources) -> dict[str, int | list[int]]:
    """The characters of each source, or of each of its pages."""
    return {name: len(text) if isinstance(text, str) else [*map(len, text)] for name, text in sources.items()}


def show_map(chart: DocumentMap) -> None:
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


def write_svg(name: str, chart: DocumentMap, question: str) -> None:
    """Write the map as a picture.

    Raises:
        OptionError: The file cannot be written.
    """
    try:
        with replacing(Path(name)) as file:
            file.write(as_svg(chart, question).encode("utf-8", "replace"))
    except OSError as error:
        raise OptionError(f"cannot write {name}: {error.strerror or error}", name) from error
