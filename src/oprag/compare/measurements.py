"""What was measured of each setting: time, processor and memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, NamedTuple

from oprag.compare.reading import Results
from oprag.compare.records import Phase
from oprag.compare.results_access import opened_database
from oprag.compare.results_file import ResultsFile
from oprag.compare.setting import settings_of
from oprag.compare.statistics import Summary, mean_over, summarise

__all__ = ["MeasuredPhase", "MeasuredRow", "MeasuredSetting", "measured_rows", "measured_table"]

_PHASES: tuple[Phase, ...] = ("indexing", "retrieval", "generation")


@dataclass(frozen=True, kw_only=True)
class MeasuredPhase:
    """What one phase of the answers of a setting took.

    Attributes:
        seconds: A summary of its wall time, over questions; attempts at a question are averaged first.
        cpu_percent: The mean share of all cores that it used.
        peak_memory_bytes: The most resident memory.
        memory_growth_bytes: The most by which it grew.
    """

    seconds: Summary
    cpu_percent: float
    peak_memory_bytes: int
    memory_growth_bytes: int


@dataclass(frozen=True, kw_only=True)
class MeasuredSetting:
    """What the answers of a setting took.

    Attributes:
        values: The values of the axes that have an effect, but for the seed and the repeat.
        phases: Each phase that was measured.
    """

    values: Mapping[str, Any]
    phases: Mapping[Phase, MeasuredPhase]


class MeasuredRow(NamedTuple):
    """What one phase of one attempt at a question took.

    Attributes:
        cell: The key of the cell.
        question: The key of the question.
        attempt: The number of the attempt.
        phase: The phase.
        seconds: Its wall time.
        cpu_percent: The share of all cores that it used.
        peak_memory_bytes: The most resident memory.
        memory_growth_bytes: By how much it grew.
    """

    cell: str
    question: str
    attempt: int
    phase: Phase
    seconds: float
    cpu_percent: float
    peak_memory_bytes: int
    memory_growth_bytes: int


def measured_rows(results: Results, file: ResultsFile | str | os.PathLike[str]) -> list[MeasuredRow]:
    """What was measured of the answers of an experiment, in the sequence in which it was.

    Args:
        results: The results of the experiment.
        file: The results file.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    ours = {cell.key for cell in results.cells}
    with opened_database(file).reading() as connection:
        rows = connection.execute(
            "SELECT cells.key, questions.key, attempt, phase, seconds, cpu_percent, peak_memory_bytes, "
            "memory_growth_bytes FROM measurements JOIN cells ON cells.id = measurements.cell "
            "JOIN questions ON questions.id = measurements.question ORDER BY measurements.id"
        )
        # Experiments share cells, and ask them other questions.
        return [row for row in map(MeasuredRow._make, rows) if row.cell in ours and row.question in results.clusters]


def measured_table(results: Results, file: ResultsFile | str | os.PathLike[str]) -> list[MeasuredSetting]:
    """A row for each setting of which something was measured, in the sequence of the grid.

    Args:
        results: The results of an experiment.
        file: The results file.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    by_cell: dict[str, list[MeasuredRow]] = {}
    for row in measured_rows(results, file):
        by_cell.setdefault(row.cell, []).append(row)
    table: list[MeasuredSetting] = []
    for setting in settings_of(results.cells):
        measured = [row for cell in setting.cells for row in by_cell.get(cell.key, ())]
        phases = {phase: [row for row in measured if row.phase == phase] for phase in _PHASES}
        if measured:
            table.append(
                MeasuredSetting(
                    values=setting.values, phases={phase: _phase(some) for phase, some in phases.items() if some}
                )
            )
    return table


def _phase(rows: Sequence[MeasuredRow]) -> MeasuredPhase:
    by_question: dict[str, list[float]] = {}
    for row in rows:
        by_question.setdefault(row.question, []).append(row.seconds)
    seconds = [mean_over([{0: one} for one in some])[0] for some in by_question.values()]
    return MeasuredPhase(
        seconds=summarise(seconds),
        cpu_percent=fsum(row.cpu_percent for row in rows) / len(rows),
        peak_memory_bytes=max(row.peak_memory_bytes for row in rows),
        memory_growth_bytes=max(row.memory_growth_bytes for row in rows),
    )
