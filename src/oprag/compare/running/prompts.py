"""The prompts of an answer, which no results file holds: found again by making the answer from the replies kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from oprag.compare.db.cache import MemoryCache
from oprag.compare.db.records import Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import ModelCaller
from oprag.compare.running.work_item import Outcome, WorkItem
from oprag.compare.spec.axes import check_axis
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits
from oprag.compare.spec.resolved import ResolvedExperiment
from oprag.errors import ExperimentError, ResultsFileError
from oprag.methods.model_calls import Message

__all__ = ["ShownPrompt", "prompts_of"]


class ShownPrompt(NamedTuple):
    """A call of a model that an answer is made of.

    Attributes:
        step: What the call was for, such as "answer" or "combine".
        messages: What the model read.
        reply: What it wrote.
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
    with closing(ResultsFile(path)) as file:
        resolved = ResolvedExperiment(experiment, identities=file.identities())
        item = _item(resolved, question, values)
        outcome = _replayed(resolved, MemoryCache(file), item)
    if outcome is None or outcome.answer is None:
        why = "some of its replies are not there" if outcome is None else str(outcome.error)
        raise ResultsFileError(
            f"{path} has no answer to {question!r} that was made of these documents, with these prompts: {why}", path
        )
    return [ShownPrompt(call.step, call.prompt.messages, call.completion.text) for call in outcome.answer.calls]


def _item(resolved: ResolvedExperiment, question: str, values: dict[str, Any]) -> WorkItem:
    found = [
        item
        for item in resolved.items()
        if item.question.id == question and values.items() <= item.cell.values().items()
    ]
    if len(found) != 1:
        told = ", ".join(f"{name}={value!r}" for name, value in values.items()) or "no values"
        what = "no setting" if not found else f"{len(found):,} settings; give values on more axes"
        raise ExperimentError(f"the question {question!r} with {told} has {what}", question)
    return found[0]


def _replayed(resolved: ResolvedExperiment, cache: MemoryCache, item: WorkItem) -> Outcome | None:
    library = Library(resolved, cache, together=False)
    try:
        # Without an allowance the engine stops at the first call that it would have to make.
        engine = Engine(resolved, library, ModelCaller(resolved, cache), cache, Ledger(Limits(calls=0), Spent()))
        return next(engine.run([item]), None)
    finally:
        library.close()
