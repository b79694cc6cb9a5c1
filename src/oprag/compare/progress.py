"""How far a run is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oprag.compare.db.records import Spent

__all__ = ["Progress", "Watch"]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is.

    Attributes:
        done: How many questions in cells are done, earlier runs included.
        total: How many there are.
        failed: How many of them failed.
        cells: How many cells are done with all their questions.
        all_cells: How many cells there are.
        spent: What was spent on models, earlier runs included.
        running: How many calls are on their way.
        stopping: Why no further calls are made; None while they are.
    """

    done: int
    total: int
    failed: int
    cells: int
    all_cells: int
    spent: Spent
    running: int
    stopping: str | None


Watch = Callable[[Progress], None]
"""Told how far a run is, a few times a second."""
