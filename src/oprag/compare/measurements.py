"""What was measured of each setting: time, processor and memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import Measurement, Phase
from oprag.compare.reading import Results
from oprag.compare.setting import mean_over, settings_of
from oprag.compare.stats.summary import Summary, summarise

__all__ = [
    "MeasuredPhase",
    "MeasuredSetting",
    "measured_how",
    "measured_rows",
    "measured_table",
]

_PHASES: tuple[Phase, ...] = ("indexing", "retrieval", "generation")


@dataclass(frozen=True, kw_only=True)
class MeasuredPhase:
    """What one phase of the answers of a setting took.

    Attributes:
        seconds: A summary of its wall time, over questions; attempts at a question are averaged first.
        cpu_percent: The mean share of the usable cores that it used.
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
        cores: The cores that could be used, of each run that measured any of it, such as
            "2 of 64 (limit of the container)".
    """

    values: Mapping[str, Any]
    phases: Mapping[Phase, MeasuredPhase]
    cores: Sequence[str] = ()


def measured_rows(results: Results, path: str | os.PathLike[str]) -> list[Measurement]:
    """What was measured of the answers of an experiment, in the sequence in which it was.

    Args:
        results: The results of the experiment.
        path: The results file.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    with ResultsReader(path, results.experiment) as reader:
        return reader.measurements()


def measured_table(results: Results, path: str | os.PathLike[str]) -> list[MeasuredSetting]:
    """A row for each setting of which something was measured, in the sequence of the grid.

    Args:
        results: The results of an experiment.
        path: The results file.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    by_cell: dict[str, list[Measurement]] = {}
    with ResultsReader(path, results.experiment) as reader:
        rows, cores = reader.measurements(), reader.measured_cores()
    for row in rows:
        by_cell.setdefault(row.cell, []).append(row)
    table: list[MeasuredSetting] = []
    for setting in settings_of(results.cells):
        measured = [by_cell[cell.key] for cell in setting.cells if cell.key in by_cell]
        phases = {
            phase: _phase([[row for row in rows if row.phase == phase] for rows in measured]) for phase in _PHASES
        }
        if measured:
            there = {phase: found for phase, found in phases.items() if found is not None}
            told = {one for cell in setting.cells for one in cores.get(cell.key, ())}
            table.append(MeasuredSetting(values=setting.values, phases=there, cores=sorted(told)))
    return table


def measured_how(table: Sequence[MeasuredSetting]) -> str:
    """What the figures of processor and memory are, in a sentence each."""
    cores = " or ".join(sorted({told for row in table for told in row.cores}))
    return (
        f"CPU is the share of the usable cores{cores and f', {cores}'}. "
        "Memory was sampled every 10 ms; a shorter peak can be missed."
    )


def _phase(by_cell: Sequence[Sequence[Measurement]]) -> MeasuredPhase | None:
    seconds: list[dict[str, float]] = []
    for rows in by_cell:
        attempts: dict[str, list[float]] = {}
        for row in rows:
            attempts.setdefault(row.question, []).append(row.seconds)
        seconds.append({question: fsum(some) / len(some) for question, some in attempts.items()})
    found = mean_over(seconds)
    if not found:
        return None
    everything = [row for rows in by_cell for row in rows]
    return MeasuredPhase(
        seconds=summarise(np.array(list(found.values()))),
        cpu_percent=fsum(row.cpu_percent for row in everything) / len(everything),
        peak_memory_bytes=max(row.peak_memory_bytes for row in everything),
        memory_growth_bytes=max(row.memory_growth_bytes for row in everything),
    )
