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
    """A question in a cell.

    Attributes:
        cell: The cell.
        question: The question.
        cell_key: The content address of the cell.
        question_key: The content address of the question and its documents.
    """

    cell: Cell
    question: Question
    cell_key: str
    question_key: str


class Outcome(NamedTuple):
    """What came of a unit.

    Attributes:
        unit: The unit.
        answer: The answer; None where it failed.
        error: Why it failed; None where it did not.
        calls: The step and the content address of each reply that it was made of, in the sequence of the method.
        embedded: Texts that were embedded for it.
    """

    unit: WorkItem
    answer: Answer | None
    error: Exception | None
    calls: Sequence[tuple[str, str]]
    embedded: Sequence[str]


@dataclass(eq=False)
class WorkInProgress:
    """A unit at work.

    Attributes:
        unit: The unit.
        body: The method, which says what it wants next.
        calls: The replies so far.
        embedded: The texts that were embedded so far.
        replies: Those of the request that it waits for, by their content address; None where one has not come.
        wanted: The step and the content address of each of them, in the sequence of the prompts.
        characters: The length of the prompts that it waits with.
    """

    unit: WorkItem
    body: Answering
    calls: list[tuple[str, str]] = field(default_factory=list)
    embedded: list[str] = field(default_factory=list)
    replies: dict[str, Completion | None] = field(default_factory=dict)
    wanted: list[tuple[str, str]] = field(default_factory=list)
    characters: int = 0

    @classmethod
    def begun(cls, unit: WorkItem) -> WorkInProgress:
        """The unit, ready to say what it wants first."""
        cell, question = unit.cell, unit.question
        inputs: dict[str, Any] = {}
        if cell.method in CONTROLS:
            inputs[GOLD] = question.answers
        task = Task(question.text, cell.options, cell.context_options, question.choices, inputs=inputs)
        return cls(unit, answering(task, CONTROLS.get(cell.method)))

    def outcome(self, answer: Answer | None, error: Exception | None = None) -> Outcome:
        """What came of it."""
        self.body.close()
        return Outcome(self.unit, answer, error, tuple(self.calls), tuple(self.embedded))
