"""Plain tables of text, for what Python prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["shown", "text_table"]


def shown(value: Any) -> str:
    """A value on one line, with nothing that a terminal would obey."""
    text = "none" if value is None else str(value)
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns with two spaces between them, as wide as their widest cell.

    Args:
        head: The titles.
        rows: The cells of each row.

    Example:
        >>> print(text_table(["k", "score"], [["8", "0.325"], ["128", "0.824"]]))
        k    score
        8    0.325
        128  0.824
    """
    lines = [head, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
