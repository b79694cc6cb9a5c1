"""What of an experiment is done, and what is waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from oprag.compare.db.records import AnswerRecord, Done, Spent
from oprag.compare.opened import Opened
from oprag.compare.progress import Progress
from oprag.compare.run_report import Report
from oprag.compare.work import Unit

__all__ = ["Tally"]


class Tally:
    """What is done and what is waiting."""

    def __init__(self, opened: Opened, found: Done, *, retry_failed: bool) -> None:
        self.failed = {} if retry_failed else dict(found.failed)
        self.waiting: list[Unit] = []
        self.left: Counter[str] = Counter()
        self.total = 0
        self.broken = found.broken
        for unit in opened.units():
            self.total += 1
            place = unit.cell_key, unit.question_key
            if place not in found.answered and place not in self.failed:
                self.waiting.append(unit)
                self.left[unit.cell_key] += 1
        self.answered = self.total - len(self.waiting) - len(self.failed)
        self.all_cells = len(opened.cells.cells)

    def add_all(self, records: Iterable[AnswerRecord]) -> None:
        """Count what was done."""
        for record in records:
            if record.status == "failed":
                self.failed[record.cell, record.question] = record.error or ""
            else:
                self.answered += 1
            self.left[record.cell] -= 1

    def progress(self, spent: Spent, running: int, stopping: str | None) -> Progress:
        """How far it is."""
        return Progress(
            done=self.answered + len(self.failed),
            total=self.total,
            failed=len(self.failed),
            cells=self.all_cells - sum(1 for left in self.left.values() if left),
            all_cells=self.all_cells,
            spent=spent,
            running=running,
            stopping=stopping,
        )

    def report(self, outcome: str, spent: Spent, seconds: float) -> Report:
        """What the run did."""
        return Report(
            outcome=outcome,
            total=self.total,
            answered=self.answered,
            failed=dict(Counter(self.failed.values())),
            left=self.total - self.answered - len(self.failed),
            broken=self.broken,
            spent=spent,
            seconds=seconds,
        )
