"""How far a run is, and what it did."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from oprag.compare.cores import describe_cores
from oprag.compare.db.records import AnswerRecord, Done, Spent
from oprag.compare.running.work_item import WorkItem

__all__ = ["Progress", "RunReport", "RunState", "Watch", "versions"]


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


_PACKAGES = ("oprag", "numpy", "langchain-core", "llama-index-core", "wordllama", "bm25s", "sentence-transformers")


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a run did.

    Attributes:
        outcome: "complete", or why it ended before; a `LimitReached` where a limit stopped it.
        total: How many questions in cells the experiment has.
        answered: How many of them have an answer.
        failed: How many failed, by the class of the error.
        left: How many were not tried.
        broken: How many answers of earlier runs did not hold, since a reply was missing or changed; they were made
            again.
        spent: What all runs have spent on models.
        seconds: How long this run took.
    """

    outcome: str
    total: int
    answered: int
    failed: dict[str, int]
    left: int
    broken: int
    spent: Spent
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every question in every cell has an answer."""
        return self.answered == self.total


class RunState:
    """Which items of an experiment are done, have failed, or wait.

    Args:
        items: All items of the experiment.
        found: What of them is done.
        retry_failed: Whether those that failed before wait again.
    """

    def __init__(self, items: Sequence[WorkItem], found: Done, *, retry_failed: bool = False) -> None:
        places = {item.place for item in items}
        failed = {place: error for place, error in found.failed.items() if place in places}
        self.failed_before = len(failed)
        self.failed = {} if retry_failed else failed
        self.waiting = [item for item in items if item.place not in found.answered and item.place not in self.failed]
        self.total = len(items)
        self.answered = self.total - len(self.waiting) - len(self.failed)
        self.broken = found.broken
        self._cells = len({item.cell_key for item in items})
        self._left = Counter(item.cell_key for item in self.waiting)

    def add(self, records: Iterable[AnswerRecord]) -> None:
        """Count what was done."""
        for record in records:
            if record.status == "failed":
                self.failed[record.cell, record.question] = record.error or ""
            else:
                self.answered += 1
            self._left[record.cell] -= 1

    def progress(self, spent: Spent, running: int = 0, stopping: str | None = None) -> Progress:
        """How far it is."""
        return Progress(
            done=self.answered + len(self.failed),
            total=self.total,
            failed=len(self.failed),
            cells=self._cells - sum(1 for left in self._left.values() if left),
            all_cells=self._cells,
            spent=spent,
            running=running,
            stopping=stopping,
        )

    def report(self, outcome: str, spent: Spent, seconds: float) -> RunReport:
        """What the run did."""
        return RunReport(
            outcome=outcome,
            total=self.total,
            answered=self.answered,
            failed=dict(Counter(self.failed.values())),
            left=self.total - self.answered - len(self.failed),
            broken=self.broken,
            spent=spent,
            seconds=seconds,
        )


def versions() -> dict[str, str]:
    """What a run runs on."""
    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": describe_cores(),
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
