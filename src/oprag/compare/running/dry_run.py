"""A run without models: contexts are real, replies are placeholders."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from oprag.compare.data.data_set import Question
from oprag.compare.db.cache import Record, WorkCache
from oprag.compare.db.keys import key_of
from oprag.compare.db.records import JUDGED, Reply, Spent
from oprag.compare.db.text import named_error
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.likelihood import LIKELIHOOD
from oprag.compare.providers.names import LOCAL
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library, search_of
from oprag.compare.running.model_caller import Call, Made
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import WorkInProgress, WorkItem
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cell
from oprag.compare.spec.money import Limits
from oprag.context import Context
from oprag.methods.model_calls import Completion, Usage
from oprag.tokens import count

__all__ = ["PlannedCalls", "PlannedItem", "dry_run", "together"]

_REPLY = 100
"""Tokens of the reply of a model that has no limit."""

_VARIANTS = "variants"
_QUESTIONS = 32  # lines of a reply with other questions; the method takes as many as it wants
_CELL = "-cell-"  # replaced by what tells the contexts of cells apart


class PlannedCalls(NamedTuple):
    """Calls that would be made, and their tokens."""

    calls: int = 0
    usage: Usage = Usage()

    def plus(self, other: PlannedCalls) -> PlannedCalls:
        """Add the other calls."""
        return PlannedCalls(self.calls + other.calls, self.usage.plus(other.usage))

    def times(self, number: int) -> PlannedCalls:
        """The same calls, this many times."""
        read, written, cached, estimated = self.usage
        return PlannedCalls(self.calls * number, Usage(read * number, written * number, cached * number, estimated))


class PlannedItem(NamedTuple):
    """The calls of an item if none were shared, those of judges apart, or why it cannot be answered."""

    item: WorkItem
    asked: PlannedCalls
    judged: PlannedCalls
    failure: str | None


class DryRun(NamedTuple):
    """The calls of items: of each if none were shared, and of each model, those of judges apart."""

    items: Sequence[PlannedItem]
    asked: Mapping[str, PlannedCalls]
    judged: Mapping[str, PlannedCalls]


def dry_run(
    resolved: ResolvedExperiment,
    cache: WorkCache,
    items: Sequence[WorkItem],
    *,
    costly: Sequence[str] = (),
    again: bool = False,
    watch: Callable[[int, int], None] | None = None,
) -> DryRun:
    """Count the calls that items would make.

    Args:
        resolved: The experiment.
        cache: Known replies; splits, vectors and retrievals are stored in it.
        items: The items.
        costly: Embedders that the packaged one replaces.
        again: Whether to make calls whose reply is known or shared as well.
        watch: Called with the number of items that are planned, and of all.
    """
    embedders = resolved.embedders | (dict.fromkeys(costly, EmbedderSpec(LOCAL).open()) if costly else {})
    placeholders = _Placeholders(cache, resolved.experiment, no_replies=again)
    library = _DryLibrary(resolved, placeholders, embedders=embedders)
    engine = _DryEngine(resolved, library, placeholders, placeholders, Ledger(Limits(), Spent()))
    found: dict[tuple[str, str], PlannedItem] = {}
    try:
        for number, outcome in enumerate(engine.run(items), 1):
            asked, judged = placeholders.calls(outcome.calls), placeholders.calls(outcome.metric_calls)
            failure = None if outcome.error is None else named_error(outcome.error)
            found[outcome.item.place] = PlannedItem(outcome.item, asked, judged, failure)
            if watch is not None:
                watch(number, len(items))
    finally:
        library.close()
    planned = [found[item.place] for item in items if item.place in found]
    return DryRun(planned, placeholders.asked, placeholders.judged)


def together(*parts: Mapping[str, PlannedCalls]) -> dict[str, PlannedCalls]:
    """The sum of planned calls, by model."""
    found: dict[str, PlannedCalls] = {}
    for name, asked in chain(*(part.items() for part in parts)):
        found[name] = found.get(name, PlannedCalls()).plus(asked)
    return found


class _DryLibrary(Library):
    """A library for placeholders: questions that methods make up, and answers, are not known to a plan.

    So they are neither embedded nor searched for. Their contexts are taken to be those of the original question, and
    all answers to have a cosine similarity of 1.
    """

    def contexts(self, cell: Cell, question: Question, asked: Sequence[str]) -> list[Context]:
        """The context of the original question, for each of those asked."""
        return super().contexts(cell, question, [question.text]) * len(asked)

    def vectors(self, cell: Cell, questions: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:  # noqa: ARG002
        """Equal vectors, of shape (number of texts, 1)."""
        return np.ones((len(questions), 1), np.float32), np.ones((len(texts), 1), np.float32)


class _DryEngine(Engine):
    """Gives cells that search in another way other questions, as placeholders.

    They find other contexts, at least for some questions. So no fewer calls are planned than will be made.
    """

    def _taken(self, work: WorkInProgress) -> tuple[Completion | None, ...]:
        replies = super()._taken(work)
        cell = work.outcome.item.cell
        options = {name: value for name, value in vars(cell.context_options).items() if name != "count_tokens"}
        found = key_of("found", list(cell.split), cell.embedder, list(search_of(cell)), options)
        return tuple(
            replace(reply, text=reply.text.replace(_CELL, found)) if reply is not None and step == _VARIANTS else reply
            for (step, _), reply in zip(work.wanted, replies, strict=True)
        )


class _Placeholders:
    """A `Caller` that answers each call with a placeholder, and the `WorkCache` that knows these replies.

    A placeholder is made when it is read, so that no texts are held.
    """

    def __init__(self, below: WorkCache, experiment: Experiment, *, no_replies: bool) -> None:
        self._below = below
        self._no_replies = no_replies
        self._models = experiment.models
        self._count = experiment.token_counter
        self._begun: dict[str, tuple[str, Usage]] = {}  # the step and the tokens
        self._made: deque[Made] = deque()
        self.asked: dict[str, PlannedCalls] = {}
        self.judged: dict[str, PlannedCalls] = {}

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        if kind is not Reply:
            return self._below.get(kind, keys)
        found: list[Any] = [None] * len(keys) if self._no_replies else self._below.get(kind, keys)
        placeholders: list[Any] = [self._reply(key) if key in self._begun else None for key in keys]
        return [new or old for new, old in zip(placeholders, found, strict=True)]

    def put(self, records: Sequence[Record]) -> list[Record]:
        return self._below.put(records)

    @property
    def running(self) -> int:
        return len(self._made)

    def begin(self, call: Call) -> None:
        step, longest = call.prompt.step, self._models[call.model].max_reply_tokens
        output = 0 if step == LIKELIHOOD else _REPLY if longest is None else longest
        usage = Usage(count(call.prompt.text, self._count), output, estimated=True)
        self._begun[call.key] = step, usage
        asked = self.judged if step.startswith(JUDGED) else self.asked
        asked[call.model] = asked.get(call.model, PlannedCalls()).plus(PlannedCalls(1, usage))
        self._made.append(Made(call, self._reply(call.key).completion, Spent()))

    def take(self) -> list[Made]:
        return [self._made.popleft()]

    def calls(self, made: Sequence[tuple[str, str]]) -> PlannedCalls:
        """The tokens of calls; 0 for a stored reply."""
        total = PlannedCalls()
        for _, key in made:
            total = total.plus(PlannedCalls(1, self._begun[key][1] if key in self._begun else Usage()))
        return total

    def _reply(self, key: str) -> Reply:
        step, usage = self._begun[key]
        return Reply(key, "", step, _placeholder(key, step, usage.output_tokens), usage, None, 0.0)


def _placeholder(key: str, step: str, tokens: int) -> str:
    """A reply in the form that the step expects; it has the key of the call in it, so that no two are equal."""
    if step == LIKELIHOOD:
        return "0"
    if step == "route":
        return "unanswerable"
    if step == _VARIANTS:
        return "\n".join(f"What is {key}{_CELL}{number}?" for number in range(1, _QUESTIONS + 1))
    text = f"{key} {'word ' * max(0, tokens - 8)}".rstrip()
    return f"{text}\nConfidence: 50" if step == "rerank" else text
