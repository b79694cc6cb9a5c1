"""The progress of a run, and its report."""

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
    """The progress of a run.

    Attributes:
        done: Number of questions in cells that are done, earlier runs included.
        total: Number of questions in cells.
        failed: Number of those done that failed.
        cells: Number of cells whose questions are all done.
        all_cells: Number of cells.
        spent: Calls, tokens and money spent on models, earlier runs included.
        running: Number of calls in flight.
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
"""Called with the progress of a run, a few times a second."""


_PACKAGES = ("oprag", "numpy", "langchain-core", "llama-index-core", "wordllama", "bm25s", "sentence-transformers")


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a run did.

    Attributes:
        outcome: "complete", or why it ended before; a `LimitReached` where a limit stopped it.
        total: Number of questions in cells.
        answered: Number of them that have an answer.
        failed: Number of them that failed, by the class of the error.
        left: Number of them that were not tried.
        broken: Number of stored answers that failed verification, since a reply was missing or changed; they were
            regenerated.
        spent: Calls, tokens and money that all runs have spent on models.
        seconds: The duration of this run.
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
        found: Those that are done.
        retry_failed: Whether to retry those that failed before.
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
        """Count new answers and failures."""
        for record in records:
            if record.error is None:
                self.answered += 1
            else:
                self.failed[record.cell, record.question] = record.error
            self._left[record.cell] -= 1

    def progress(self, spent: Spent, running: int = 0, stopping: str | None = None) -> Progress:
        """The progress."""
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
        """The report of the run."""
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
    """The versions, the system and the cores that a run has."""
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
