"""A run without models: contexts are real, replies are placeholders."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from oprag.compare.data.data_set import Question
from oprag.compare.db.cache import MemoryCache, Record, WorkCache
from oprag.compare.db.keys import key_of
from oprag.compare.db.records import JUDGED, Reply, Spent
from oprag.compare.db.text import named_error
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.likelihood import LIKELIHOOD
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.names import LOCAL
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library, search_of
from oprag.compare.running.model_caller import Call, Made
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import WorkInProgress, WorkItem
from oprag.compare.spec.grid import Cell
from oprag.compare.spec.money import Limits
from oprag.context import Context
from oprag.methods.model_calls import Completion, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["DryRun", "PlannedCalls", "PlannedItem", "together"]

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


class DryRun:
    """Counts the calls that items would make."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        cache: WorkCache | None,
        costly: Sequence[str],  # embedders that the packaged one replaces; its retrievals are not stored
        *,
        keep: bool,  # whether to store splits, vectors and retrievals in the cache
        again: bool,  # whether to make calls whose reply is stored or shared
    ) -> None:
        self._resolved = resolved
        embedders = dict(resolved.embedders)
        if costly:
            embedders |= dict.fromkeys(costly, EmbedderSpec(LOCAL).open())
        write_through = keep and cache is not None and not costly
        counter = resolved.experiment.token_counter
        self._cache = _Placeholders(cache, counter, write_through=write_through, no_replies=again)
        self._library = _DryLibrary(resolved, self._cache, embedders=embedders)
        self._caller = _Nobody(resolved.experiment.models, self._cache)

    @property
    def asked(self) -> Mapping[str, PlannedCalls]:
        """The calls, by model."""
        return together(self._caller.asked, self.judged)

    @property
    def judged(self) -> Mapping[str, PlannedCalls]:
        """The calls of judges, by model."""
        return self._caller.judged

    def run(self, items: Sequence[WorkItem], watch: Callable[[int, int], None] | None) -> list[PlannedItem]:
        """Plan each item, in their sequence."""
        engine = _DryEngine(self._resolved, self._library, self._caller, self._cache, Ledger(Limits(), Spent()))
        found: dict[tuple[str, str], PlannedItem] = {}
        try:
            for number, outcome in enumerate(engine.run(items), 1):
                asked, judged = self._asked(outcome.calls), self._asked(outcome.metric_calls)
                failure = None if outcome.error is None else named_error(outcome.error)
                found[outcome.item.place] = PlannedItem(outcome.item, asked, judged, failure)
                if watch is not None:
                    watch(number, len(items))
        finally:
            self._library.close()
        return [found[item.place] for item in items if item.place in found]

    def _asked(self, calls: Sequence[tuple[str, str]]) -> PlannedCalls:
        asked = PlannedCalls()
        for _, key in calls:
            asked = asked.plus(PlannedCalls(1, self._cache.usage(key)))
        return asked


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
        cell = work.item.cell
        options = {name: value for name, value in vars(cell.context_options).items() if name != "count_tokens"}
        found = key_of("found", list(cell.split), cell.embedder, list(search_of(cell)), options)
        return tuple(
            replace(reply, text=reply.text.replace(_CELL, found)) if reply is not None and step == _VARIANTS else reply
            for (step, _), reply in zip(work.wanted, replies, strict=True)
        )


class _Placeholders(MemoryCache):
    """Knows which replies there would be, and makes each when it is read, so that it holds no texts."""

    def __init__(
        self, below: WorkCache | None, count_tokens: TokenCounter, *, write_through: bool, no_replies: bool
    ) -> None:
        super().__init__(below, write_through=write_through)
        self._no_replies = no_replies
        self._count = count_tokens
        self._begun: dict[str, tuple[str, int, int]] = {}

    def begin(self, call: Call, longest: int | None) -> Usage:
        """Note a call, and return its tokens."""
        likely = call.prompt.step == LIKELIHOOD
        output = 0 if likely else _REPLY if longest is None else longest
        self._begun[call.key] = call.prompt.step, count(call.prompt.text, self._count), output
        return self.usage(call.key)

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key, or a placeholder of a reply."""
        if kind is not Reply:
            return super().get(kind, keys)
        found: list[Any] = [None] * len(keys) if self._no_replies else super().get(kind, keys)
        return [self.placeholder(key) if key in self._begun else one for key, one in zip(keys, found, strict=True)]

    def placeholder(self, key: str) -> Any:
        """The placeholder of the reply to a call that was begun."""
        step, _, output = self._begun[key]
        return Reply(key, "", step, _placeholder(key, step, output), self.usage(key), None, 0.0)

    def usage(self, key: str) -> Usage:
        """The tokens of a call that was begun; 0 for a stored reply."""
        _, read, written = self._begun.get(key, ("", 0, 0))
        return Usage(read, written, 0, estimated=True)


class _Nobody:
    """Answers each call with a placeholder; a `Caller`."""

    def __init__(self, models: Mapping[str, ModelSpec], cache: _Placeholders) -> None:
        self._models = models
        self._cache = cache
        self._made: deque[Made] = deque()
        self.asked: dict[str, PlannedCalls] = {}
        self.judged: dict[str, PlannedCalls] = {}

    @property
    def running(self) -> int:
        return len(self._made)

    def begin(self, call: Call) -> None:
        usage = self._cache.begin(call, self._models[call.model].max_reply_tokens)
        asked = self.judged if call.prompt.step.startswith(JUDGED) else self.asked
        asked[call.model] = asked.get(call.model, PlannedCalls()).plus(PlannedCalls(1, usage))
        self._made.append(Made(call, self._cache.placeholder(call.key).completion, Spent()))

    def take(self) -> list[Made]:
        return [self._made.popleft()]


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
