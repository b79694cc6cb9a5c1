"""Making answers again from their stored replies: to score measured ones, and to show the prompts of one."""

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
from oprag.compare.running.model_caller import Call, ModelCaller
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import Outcome, WorkInProgress, WorkItem
from oprag.compare.spec.axes import check_axis
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits
from oprag.errors import ExperimentError, ModelError, ResultsFileError
from oprag.methods.model_calls import Message

__all__ = ["PromptReader", "Replay", "ShownPrompt", "prompts_of"]


class Replay(Engine):
    """Makes answers from stored replies, and asks judges about them; an answer that needs a call is left out."""

    def __init__(
        self, resolved: ResolvedExperiment, library: Library, cache: WorkCache, ledger: Ledger | None = None
    ) -> None:
        self._models_of_judges = ModelCaller(resolved, cache)
        super().__init__(resolved, library, self._models_of_judges, cache, ledger or Ledger(Limits(), Spent()))
        if ledger is None:
            self._judges = []  # without a ledger nothing can be paid

    def run(self, items: Iterable[WorkItem]) -> Iterator[Outcome]:
        """Yield the outcome of each item that needs no call of its own."""
        return (outcome for outcome in super().run(items) if not isinstance(outcome.error, _NotKeptError))

    def close(self) -> None:
        """Let the threads end."""
        self._models_of_judges.close()

    def _queue(self, work: WorkInProgress, call: Call) -> None:
        if not work.judging:
            raise _NotKeptError("the reply is not stored", call.key)
        super()._queue(work, call)


class _NotKeptError(ModelError):
    """A reply is not stored, so the answer would need a call."""


class ShownPrompt(NamedTuple):
    """A call of a model that an answer is made of.

    Attributes:
        step: The purpose of the call, such as "answer" or "combine".
        messages: The prompt.
        reply: The reply of the model.
    """

    step: str
    messages: Sequence[Message]
    reply: str


def prompts_of(experiment: Experiment, path: str | os.PathLike[str], question: str, **values: Any) -> list[ShownPrompt]:
    """Show what a model read to answer a question, and what it wrote, in the sequence of the calls.

    A results file holds no text of documents, so the method is run again with the replies that are in the file; no
    model is asked. A reply is found by its model and its whole prompt, so the prompts are those that were sent.

    Args:
        experiment: The experiment, with the same documents.
        path: The results file.
        question: The id of the question.
        **values: Values on axes that one setting alone has, such as `method="refine", k=8`.

    Raises:
        ExperimentError: No setting has these values, or several have; or there is no such question.
        OptionError: There is no such axis.
        ResultsFileError: The file has no answer that was made of these documents, or is damaged or another one.

    Example:
        ```python
        for prompt in prompts_of(experiment, "results.db", "q7", method="stuff", order="source"):
            print(prompt.messages[-1].content, "->", prompt.reply)
        ```
    """
    for name in values:
        check_axis(name)
    if not Path(path).is_file():  # to open it would make it
        raise ResultsFileError(f"there is no results file {path}", path)
    with PromptReader(experiment, path) as reader:
        outcome = reader.replayed(reader.item(question, values))
    if outcome is None or outcome.answer is None:
        why = "some of its replies are missing" if outcome is None else str(outcome.error)
        raise ResultsFileError(
            f"{path} has no answer to {question!r} that was made of these documents, with these prompts: {why}", path
        )
    return _shown(outcome)


class PromptReader:
    """Makes answers again from the replies in a results file, one after the other."""

    def __init__(self, experiment: Experiment, path: str | os.PathLike[str]) -> None:
        self._stack = ExitStack()
        file = self._stack.enter_context(closing(ResultsFile(path)))
        self._cache = MemoryCache(file)
        self.resolved = ResolvedExperiment(experiment, identities=file.identities())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def at(self, cell_key: str, question_key: str) -> list[ShownPrompt]:
        """The calls of the answer at a place; none where the experiment has no such place, or a reply is missing."""
        item = self._items.get((cell_key, question_key))
        outcome = None if item is None else self.replayed(item)
        return [] if outcome is None else _shown(outcome)

    def item(self, question: str, values: dict[str, Any]) -> WorkItem:
        """The question, by its id, in the one cell that has these values."""
        found = [
            item
            for item in self._items.values()
            if item.question.id == question and values.items() <= item.cell.values().items()
        ]
        if len(found) != 1:
            told = ", ".join(f"{name}={value!r}" for name, value in values.items()) or "no values"
            what = "no setting" if not found else f"{len(found):,} settings; give values on more axes"
            raise ExperimentError(f"the question {question!r} with {told} has {what}", question)
        return found[0]

    def replayed(self, item: WorkItem) -> Outcome | None:
        """What comes of an item without a call; None where it needs one."""
        return next(Replay(self.resolved, self._library, self._cache).run([item]), None)

    @cached_property
    def _items(self) -> dict[tuple[str, str], WorkItem]:
        return {item.place: item for item in self.resolved.items()}

    @cached_property
    def _library(self) -> Library:
        library = Library(self.resolved, self._cache, together=False)
        self._stack.callback(library.close)
        return library


def _shown(outcome: Outcome) -> list[ShownPrompt]:
    calls = () if outcome.answer is None else outcome.answer.calls
    return [ShownPrompt(call.step, call.prompt.messages, call.completion.text) for call in calls]
