"""Progress and report of a run."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from oprag.compare.db.records import AnswerRecord, Done, Spent
from oprag.compare.meter import usable_cores
from oprag.compare.running.work_item import WorkItem

__all__ = ["ProgressCallback", "RunReport", "RunState", "versions"]


_PACKAGES = ("oprag", "numpy", "langchain-core", "llama-index-core", "wordllama", "bm25s", "sentence-transformers")


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The report of a run, final or in progress.

    Attributes:
        outcome: "complete", or why the run stopped or is stopping early; a `LimitReached` if at a spending limit. Empty
            while the run continues.
        total: Number of answers to generate: one for each question of each cell.
        answered: Number of answers that exist, including those of earlier runs.
        failed: Number of answers that failed, by the class of the error.
        remaining: Number of answers that were not tried.
        spent: Calls, tokens and money spent by all runs.
        running: Number of calls in flight.
        seconds: The duration of this run, in seconds.
    """

    outcome: str
    total: int
    answered: int
    failed: dict[str, int]
    remaining: int
    spent: Spent
    running: int
    seconds: float

    @property
    def done(self) -> int:
        """Number of answers that exist or failed, including those of earlier runs."""
        return self.total - self.remaining

    @property
    def complete(self) -> bool:
        """Whether every question in every cell has an answer."""
        return self.answered == self.total


ProgressCallback = Callable[[RunReport], None]
"""A function that is called with the report so far, several times a second."""


class RunState:
    """The answered, failed and waiting items of an experiment.

    Args:
        items: All items of the experiment.
        found: The items that are answered or failed in the results file.
        retry_failed: Whether to retry items that failed before.
    """

    def __init__(self, items: Sequence[WorkItem], found: Done, *, retry_failed: bool = False) -> None:
        places = {item.place for item in items}
        failed = {place: error for place, error in found.failed.items() if place in places}
        self.failed_before = len(failed)
        self.failed = {} if retry_failed else failed
        self.waiting = [item for item in items if item.place not in found.answered and item.place not in self.failed]
        self.total = len(items)
        self.answered = self.total - len(self.waiting) - len(self.failed)

    def add(self, records: Iterable[AnswerRecord]) -> None:
        """Count new answers and failures."""
        for record in records:
            if record.error is None:
                self.answered += 1
            else:
                self.failed[record.cell, record.question] = record.error

    def report(self, spent: Spent, since: float, outcome: str = "", running: int = 0) -> RunReport:
        """The report of a run that started at `since`, in seconds of `time.perf_counter()`."""
        return RunReport(
            outcome=outcome,
            total=self.total,
            answered=self.answered,
            failed=dict(Counter(self.failed.values())),
            remaining=self.total - self.answered - len(self.failed),
            spent=spent,
            running=running,
            seconds=time.perf_counter() - since,
        )


def versions() -> dict[str, str]:
    """The package versions and system of this process, and the CPU cores that it may use."""
    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": f"{usable_cores():g}",
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
