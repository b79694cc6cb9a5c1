"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["printable", "table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, columns aligned; each cell stays on its line."""
    cells = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    ]


def printable(cell: str) -> str:
    """The text without line breaks and control characters, which metadata and replies can hold."""
    return "".join(letter if letter.isprintable() else "?" for letter in cell)
