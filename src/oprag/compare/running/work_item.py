"""One question in one cell, while it is worked on."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oprag.compare.data.data_set import Question
from oprag.compare.metrics.judge import JudgeMetric
from oprag.compare.metrics.registry import ScoredAnswer
from oprag.compare.spec.controls import CONTROLS, GOLD
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
    """A question in a cell."""

    cell: Cell
    question: Question
    cell_key: str
    question_key: str

    @property
    def place(self) -> tuple[str, str]:
        """The keys of the cell and of the question."""
        return self.cell_key, self.question_key


class AskModel(NamedTuple):
    """Ask a judge's model; the result is a tuple of one `Completion`."""

    model: str
    prompts: tuple[Prompt]


class Outcome(NamedTuple):
    """The outcome of an item: an answer, or the error that it failed with."""

    item: WorkItem
    answer: Answer | None
    error: Exception | None
    calls: Sequence[tuple[str, str]]  # the step and the key of each reply, in the sequence of the calls
    embedded: Sequence[str]  # texts that were embedded for it
    judged: Mapping[str, float] = {}  # the scores of judges
    notes: Sequence[str] = ()  # why a judge gave no score
    metric_calls: Sequence[tuple[str, str]] = ()  # as `calls`, for judges


@dataclass(eq=False)
class WorkInProgress:
    """An item that is being worked on."""

    item: WorkItem
    body: Generator[Request | AskModel, Any, Answer]  # the method, then its judges
    calls: list[tuple[str, str]] = field(default_factory=list)
    embedded: list[str] = field(default_factory=list)
    replies: dict[str, Completion | None] = field(default_factory=dict)  # that it waits for; None until they come
    wanted: list[tuple[str, str]] = field(default_factory=list)  # their steps and keys, in the sequence of the prompts
    characters: int = 0  # of the prompts that it waits with
    judging: bool = False  # whether it waits for a judge
    metric_calls: list[tuple[str, str]] = field(default_factory=list)
    judged: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def begun(cls, item: WorkItem, judges: Sequence[JudgeMetric] = ()) -> WorkInProgress:
        """Begin an item."""
        cell, question = item.cell, item.question
        inputs: dict[str, Any] = {}
        if cell.method in CONTROLS:
            inputs[GOLD] = question.answers
        task = Task(question.text, cell.options, cell.context_options, question.choices, inputs=inputs)
        method = answering(task, CONTROLS.get(cell.method))
        work = cls(item, method)
        if judges:
            work.body = work._judge(method, judges)
        return work

    def _judge(self, method: Answering, judges: Sequence[JudgeMetric]) -> Generator[Request | AskModel, Any, Answer]:
        """The method, then the judges of its answer; a failed call of a judge fails the question."""
        answer = yield from method
        cell, question = self.item.cell, self.item.question
        given = ScoredAnswer(question=question, method=cell.method, text=answer.text, context=answer.context)
        for metric in judges:
            prompt = metric.judge.ask(metric.name, given) if metric.applies(given) else None
            if prompt is None:
                continue
            (completion,) = yield AskModel(metric.judge.model, (prompt,))
            if completion.error is not None:
                reason = " ".join(masked_error(completion.error).split())
                raise ModelError(f"the judge {metric.name!r} failed: {reason}", metric.name) from completion.error
            try:
                self.judged[metric.name] = metric.judge.read(completion.text)
            except OptionError as error:
                self.notes.append(f"no {metric.name}: {error}")
        return answer

    def outcome(self, answer: Answer | None, error: Exception | None = None) -> Outcome:
        """End it, and return its outcome."""
        self.body.close()
        calls, metric_calls = tuple(self.calls), tuple(self.metric_calls)
        return Outcome(
            self.item, answer, error, calls, tuple(self.embedded), self.judged, tuple(self.notes), metric_calls
        )
