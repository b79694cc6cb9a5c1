"""A question in a cell, and its processing state."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oprag.compare.controls import method_function
from oprag.compare.data.data_set import Question
from oprag.compare.meter import Measurement
from oprag.compare.metrics.judge import JudgeMetric
from oprag.compare.metrics.registry import ScoredAnswer
from oprag.compare.spec.grid import Cell
from oprag.errors import ModelError, OptionError
from oprag.masking import masked_error
from oprag.methods.answer import Answer
from oprag.methods.answering import Answering, answering
from oprag.methods.effects import Request
from oprag.methods.model_calls import Completion, Prompt
from oprag.methods.task import Task

__all__ = ["AskModel", "Outcome", "WorkInProgress", "WorkItem"]


class WorkItem(NamedTuple):
    """A question in a cell, with their keys."""

    cell: Cell
    question: Question
    cell_key: str
    question_key: str

    @property
    def place(self) -> tuple[str, str]:
        """The keys of the cell and of the question."""
        return self.cell_key, self.question_key


class AskModel(NamedTuple):
    """A request to call a judge's model; its result is a tuple of one `Completion`."""

    model: str
    prompts: tuple[Prompt]


@dataclass
class Outcome:
    """The outcome of an item: an answer or an error."""

    item: WorkItem
    answer: Answer | None = None
    error: Exception | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)  # the step and key of each reply, in order
    embedded: list[str] = field(default_factory=list)  # texts that were embedded for the item
    judged: dict[str, float] = field(default_factory=dict)  # scores by judges
    notes: list[str] = field(default_factory=list)  # why a judge returned no score
    metric_calls: list[tuple[str, str]] = field(default_factory=list)  # like `calls`, for judges
    reused: bool = False  # whether a reply of the answer was stored before
    measurement: Measurement | None = None


@dataclass(eq=False)
class WorkInProgress:
    """An item that is being processed."""

    outcome: Outcome  # so far
    body: Generator[Request | AskModel, Any, Answer]  # the method, then its judges
    replies: dict[str, Completion | None] = field(default_factory=dict)  # requested replies by key; None while missing
    requested: list[tuple[str, str]] = field(default_factory=list)  # steps and keys of the replies, in prompt order
    characters: int = 0  # of the prompts of the requested replies
    judging: bool = False  # whether the requested replies are those of a judge

    @classmethod
    def begun(
        cls,
        item: WorkItem,
        judges: Sequence[JudgeMetric] = (),
        measured: Callable[[Answering, Outcome], Answering] | None = None,
    ) -> WorkInProgress:
        """Start an item; `measured` measures its method."""
        cell, question = item.cell, item.question
        task = Task(question.text, cell.options, cell.context_options, question.choices)
        outcome = Outcome(item)
        method = answering(task, method_function(cell.method))
        return cls(outcome, _judged(method if measured is None else measured(method, outcome), outcome, judges))

    def ended(self, answer: Answer | None, error: Exception | None = None) -> Outcome:
        """End the item and return its outcome."""
        self.body.close()
        self.outcome.answer, self.outcome.error = answer, error
        return self.outcome


def _judged(
    method: Answering, outcome: Outcome, judges: Sequence[JudgeMetric]
) -> Generator[Request | AskModel, Any, Answer]:
    """Run the method, then the judges of its answer; a failed judge call fails the item."""
    answer = yield from method
    cell, question = outcome.item.cell, outcome.item.question
    given = ScoredAnswer(question=question, method=cell.method, text=answer.text, context=answer.context)
    for metric in judges:
        prompt = metric.ask(given) if metric.applies(given) else None
        if prompt is None:
            continue
        (completion,) = yield AskModel(metric.judge.model, (prompt,))
        if completion.error is not None:
            reason = " ".join(masked_error(completion.error).split())
            raise ModelError(f"the judge {metric.name!r} failed: {reason}", metric.name) from completion.error
        try:
            outcome.judged[metric.name] = metric.read(completion.text)
        except OptionError as error:
            outcome.notes.append(f"no {metric.name}: {error}")
    return answer
