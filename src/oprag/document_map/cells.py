"""A source as a strip of cells, for a terminal."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
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
    segments = row.segments(states)
    starts, ends = [segment.start for segment in segments], [segment.end for segment in segments]
    cells: list[Cell] = []
    for number in range(width):
        begin, end = _border(row, number, width), _border(row, number, width, 1)
        counts = dict.fromkeys(states, 0)
        for segment in segments[bisect_right(ends, begin) : bisect_left(starts, end)]:
            counts[segment.state] += min(end, segment.end) - max(begin, segment.start)
        cells.append(_cell(counts, end - begin))
    return cells


def _border(row: Row, number: int, width: int, size: int = 0) -> int:
    """Where a cell begins, or ends with size 1; a source that is shorter than the strip has no empty cells."""
    begin = number * row.length // width
    return max(begin + 1, (number + 1) * row.length // width) if size else begin


def _cell(counts: Mapping[str, int], length: int) -> Cell:
    kept = counts.get(KEPT, 0)
    state = KEPT if kept else max(counts, key=counts.__getitem__, default="")
    if not counts.get(state):
        return Cell("", half=False)
    return Cell(state, 2 * counts[state] >= length)
