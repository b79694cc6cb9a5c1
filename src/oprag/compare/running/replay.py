"""Rebuild answers from stored replies, to show their prompts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from oprag.compare.db.cache import MemoryCache, WorkCache
from oprag.compare.db.records import Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import ModelCaller, PendingCall
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import Outcome, WorkItem
from oprag.compare.spec.axes import check_axis
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits
from oprag.errors import ExperimentError, ModelError, ResultsFileError
from oprag.masking import describe
from oprag.methods.model_calls import Message

__all__ = ["PromptReader", "Replay", "StoredPrompt", "prompts_of"]


class Replay(Engine):
    """Rebuilds answers from stored replies, without judges; skips answers with a missing reply."""

    def __init__(self, resolved: ResolvedExperiment, library: Library, cache: WorkCache) -> None:
        super().__init__(resolved, library, ModelCaller(resolved, cache), cache, Ledger(Limits(), Spent()))
        self._judges = []

    def run(self, items: Iterable[WorkItem]) -> Iterator[Outcome]:
        """Yield the outcome of each item whose replies are all stored."""
        return (outcome for outcome in super().run(items) if not isinstance(outcome.error, _MissingReplyError))

    def _queue(self, call: PendingCall) -> None:
        raise _MissingReplyError("the reply is not stored", call.key)


class _MissingReplyError(ModelError):
    """A reply is not stored, so the answer cannot be rebuilt without a call."""


class StoredPrompt(NamedTuple):
    """A model call of an answer.

    Attributes:
        step: The purpose of the call, such as "answer" or "combine".
        messages: The prompt.
        reply: The reply of the model.
    """

    step: str
    messages: Sequence[Message]
    reply: str


def prompts_of(
    experiment: Experiment, path: str | os.PathLike[str], question: str, **values: Any
) -> list[StoredPrompt]:
    """Return the prompts and replies of an answer, in the order of the calls.

    A results file does not contain document text, so the method is run again with the stored replies, without calling a
    model. Replies are looked up by model and complete prompt, so the prompts are exactly those that were sent.

    Args:
        experiment: The experiment, with the same documents.
        path: The results file.
        question: The id of the question.
        **values: Axis values that identify one cell, such as `method="refine", k=8`.

    Raises:
        ExperimentError: The question is unknown, or no cell or several cells have these values.
        OptionError: An axis is unknown.
        ResultsFileError: The file contains no answer from these documents, or it is missing, corrupt or not a results
            file.

    Example:
        ```python
        for prompt in prompts_of(experiment, "results.db", "q7", method="stuff", order="source"):
            print(prompt.messages[-1].content, "->", prompt.reply)
        ```
    """
    for name in values:
        check_axis(name)
    if not Path(path).is_file():  # opening it would create it
        raise ResultsFileError(f"results file not found: {path}", path)
    with PromptReader(experiment, path) as reader:
        outcome = reader.replayed(reader.item(question, values))
    if outcome is None or outcome.answer is None:
        why = "some of its replies are missing" if outcome is None else str(outcome.error)
        raise ResultsFileError(
            f"{path} has no answer to {describe(question)} from these documents and prompts: {why}", path
        )
    return _stored_prompts(outcome)


class PromptReader:
    """Rebuilds single answers from the replies in a results file."""

    def __init__(self, experiment: Experiment, path: str | os.PathLike[str]) -> None:
        self._stack = ExitStack()
        file = self._stack.enter_context(closing(ResultsFile(path)))
        self._cache = MemoryCache(file)
        self.resolved = ResolvedExperiment(experiment, planned=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def at(self, cell_key: str, question_key: str) -> list[StoredPrompt]:
        """The calls of an answer; empty if the experiment does not contain the item, or a reply is missing."""
        item = self._items.get((cell_key, question_key))
        outcome = None if item is None else self.replayed(item)
        return [] if outcome is None else _stored_prompts(outcome)

    def item(self, question: str, values: dict[str, Any]) -> WorkItem:
        """The item of a question, by its id, in the only cell with these axis values."""
        found = [
            item
            for item in self._items.values()
            if item.question.id == question and values.items() <= item.cell.values().items()
        ]
        if len(found) != 1:
            given = ", ".join(f"{name}={describe(value)}" for name, value in values.items()) or "no axis values"
            problem = "matches no cell" if not found else f"matches {len(found):,} cells; give values of more axes"
            raise ExperimentError(f"the question {describe(question)} with {given} {problem}", question)
        return found[0]

    def replayed(self, item: WorkItem) -> Outcome | None:
        """The outcome of an item from stored replies; None if one is missing."""
        return next(Replay(self.resolved, self._library, self._cache).run([item]), None)

    @cached_property
    def _items(self) -> dict[tuple[str, str], WorkItem]:
        return {item.place: item for item in self.resolved.items()}

    @cached_property
    def _library(self) -> Library:
        library = Library(self.resolved, self._cache, together=False)
        self._stack.callback(library.close)
        return library


def _stored_prompts(outcome: Outcome) -> list[StoredPrompt]:
    calls = () if outcome.answer is None else outcome.answer.calls
    return [StoredPrompt(call.step, call.prompt.messages, call.completion.text) for call in calls]
