"""One question in one cell, while it is worked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oprag.compare.data.data_set import Question
from oprag.compare.spec.controls import CONTROLS, GOLD
from oprag.compare.spec.grid import Cell
from oprag.methods.answer import Answer
from oprag.methods.answering import Answering, answering
from oprag.methods.model_calls import Completion
from oprag.methods.task import Task

__all__ = ["Outcome", "WorkInProgress", "WorkItem"]


class WorkItem(NamedTuple):
    """A question in a cell."""

    cell: Cell
    question: Question
    cell_key: str
    question_key: str

    @property
    def place(self) -> tuple[str, str]:
        """The keys of the cell and of the question."""
        return self.cell_key, self.question_key


class Outcome(NamedTuple):
    """What came of an item: an answer, or the error that it failed with."""

    item: WorkItem
    answer: Answer | None
    error: Exception | None
    calls: Sequence[tuple[str, str]]  # the step and the key of each reply, in the sequence of the method
    embedded: Sequence[str]  # texts that were embedded for it


@dataclass(eq=False)
class WorkInProgress:
    """An item that is worked on."""

    item: WorkItem
    body: Answering  # the method, which says what it wants next
    calls: list[tuple[str, str]] = field(default_factory=list)
    embedded: list[str] = field(default_factory=list)
    replies: dict[str, Completion | None] = field(default_factory=dict)  # that it waits for; None until they are there
    wanted: list[tuple[str, str]] = field(default_factory=list)  # their steps and keys, in the sequence of the prompts
    characters: int = 0  # of the prompts that it waits with

    @classmethod
    def begun(cls, item: WorkItem) -> WorkInProgress:
        """The item, ready to say what it wants first."""
        cell, question = item.cell, item.question
        inputs: dict[str, Any] = {}
        if cell.method in CONTROLS:
            inputs[GOLD] = question.answers
        task = Task(question.text, cell.options, cell.context_options, question.choices, inputs=inputs)
        return cls(item, answering(task, CONTROLS.get(cell.method)))

    def outcome(self, answer: Answer | None, error: Exception | None = None) -> Outcome:
        """What came of it."""
        self.body.close()
        return Outcome(self.item, answer, error, tuple(self.calls), tuple(self.embedded))
