"""A source as a strip of cells, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oprag.document_map.geometry import KEPT, Row

__all__ = ["Cell", "strip"]


class Cell(NamedTuple):
    """A part of a source, one character wide on the terminal.

    Attributes:
        state: What stands there: "kept" where anything was kept, else the reason for which most of what was retrieved
            was dropped; "" where nothing was retrieved.
        half: Whether that is half of the cell or more.
    """

    state: str
    half: bool


def strip(row: Row, states: Sequence[str], width: int) -> list[Cell]:
    """The cells of a source.

    Args:
        row: The source.
        states: The states that occur, the most important first.
        width: How many cells.
    """
    painted = row.painted(states)
    return [_cell(painted[_border(row, n, width) : _border(row, n, width, 1)], states) for n in range(width)]


def _border(row: Row, number: int, width: int, size: int = 0) -> int:
    """Where a cell begins, or ends with size 1; a source that is shorter than the strip has no empty cells."""
    begin = number * row.length // width
    return max(begin + 1, (number + 1) * row.length // width) if size else begin


def _cell(characters: bytes, states: Sequence[str]) -> Cell:
    counts = {state: characters.count(number) for number, state in enumerate(states, 1)}
    kept = counts.get(KEPT, 0)
    state = KEPT if kept else max(counts, key=counts.__getitem__, default="")
    if not counts.get(state):
        return Cell("", half=False)
    return Cell(state, 2 * counts[state] >= len(characters))
