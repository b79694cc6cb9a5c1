"""The tables of what was measured, and of what could not be."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from math import fsum

from oprag.compare.db.records import FailedMeasurement, MeasuredSoFar, Measurement, Reply, Spent
from oprag.compare.db.text import storable
from oprag.masking import without_keys

__all__ = ["found_measurements", "write_failed_measurements", "write_measured_calls", "write_measurements"]


def found_measurements(connection: sqlite3.Connection, run: int) -> MeasuredSoFar:
    """All that was measured, and what could not be in a run."""
    found = MeasuredSoFar(set(), set(), {})
    for cell, question, attempt, phase in connection.execute(
        "SELECT cells.key, questions.key, attempt, phase FROM measurements JOIN cells ON cells.id = cell "
        "JOIN questions ON questions.id = measurements.question"
    ):
        if phase == "indexing":
            found.indexed.add((cell, question))
        else:
            found.attempts.add((cell, question, attempt))
    for cell, question, error in connection.execute(
        "SELECT cells.key, questions.key, error FROM failed_measurements JOIN cells ON cells.id = cell "
        "JOIN questions ON questions.id = failed_measurements.question WHERE run = ? ORDER BY failed_measurements.id",
        [run],
    ):
        found.failed[cell, question] = error
    return found


def write_measurements(connection: sqlite3.Connection, measurements: Sequence[Measurement], run: int) -> None:
    """Write what answers took."""
    connection.executemany(
        "INSERT OR REPLACE INTO measurements SELECT NULL, cells.id, questions.id, ?, ?, ?, ?, ?, ?, ? "
        "FROM cells, questions WHERE cells.key = ? AND questions.key = ?",
        ((*measurement[2:], run, *measurement[:2]) for measurement in measurements),
    )


def write_measured_calls(
    connection: sqlite3.Connection, cell: str, spent: Spent, kept: Sequence[Reply], run: int
) -> None:
    """Write what measuring a cell has spent, without the calls whose replies are kept, which count there."""
    calls = spent.calls - len(kept)
    if calls:
        tokens = spent.tokens - sum(reply.usage.input_tokens + reply.usage.output_tokens for reply in kept)
        money = max(0.0, spent.money - fsum(reply.money or 0.0 for reply in kept))
        connection.execute(
            "INSERT INTO measured_calls SELECT ?, id, ?, ?, ? FROM cells WHERE key = ?",
            [run, calls, tokens, money, cell],
        )


def write_failed_measurements(connection: sqlite3.Connection, failures: Sequence[FailedMeasurement], run: int) -> None:
    """Write what could not be measured, and why."""
    connection.executemany(
        "INSERT INTO failed_measurements SELECT NULL, ?, cells.id, questions.id, ?, ? FROM cells, questions "
        "WHERE cells.key = ? AND questions.key = ?",
        (
            (run, failure.error, without_keys(storable(failure.message)), failure.cell, failure.question)
            for failure in failures
        ),
    )
