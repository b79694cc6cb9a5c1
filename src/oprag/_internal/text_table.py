"""Text for terminals and pages: aligned tables, single lines, and safe, escaped or shortened text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["CONTROL_CHARACTERS", "escaped", "one_line", "printable", "safe", "shortened", "table"]

CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""What a terminal interprets or XML cannot contain: control characters, changes of direction, lone surrogates."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The indented lines of a table with aligned columns, one line per row."""
    cells = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return [f"  {line}".rstrip() for line in lines]


def printable(text: str) -> str:
    """The text with a question mark for each line break and control character."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def one_line(text: str) -> str:
    """The text with every run of whitespace collapsed to a space."""
    return " ".join(text.split())


def shortened(text: str, longest: int) -> str:
    """The text, truncated to a maximum number of characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def safe(text: str) -> str:
    """The text with U+FFFD for each control character, and with Unix line endings."""
    return CONTROL_CHARACTERS.sub("\ufffd", text.replace("\r\n", "\n"))


def escaped(text: str) -> str:
    """The text escaped for HTML and XML, without control characters."""
    return escape(safe(text))
