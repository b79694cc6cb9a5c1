"""A run without model calls: contexts are real, replies are placeholders."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from oprag.compare.data.data_set import Question
from oprag.compare.db.cache import Record, WorkCache
from oprag.compare.db.keys import key_of
from oprag.compare.db.records import Reply, Spent, VectorRecord
from oprag.compare.db.text import named_error
from oprag.compare.pipelines import UNKNOWN_USAGE
from oprag.compare.providers.embedder import EmbedderSpec, ExperimentEmbedder
from oprag.compare.providers.names import LOCAL
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library, search_of
from oprag.compare.running.model_caller import Made, PendingCall
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import WorkInProgress, WorkItem
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cell
from oprag.compare.spec.money import Limits
from oprag.context import Context
from oprag.embedding.cache import Kind, text_keys
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.tokens import count

__all__ = ["PlannedCalls", "PlannedItem", "dry_run"]

_REPLY = 100
"""Estimated tokens of a reply if the model has no output limit."""

_VARIANTS = "variants"
_QUESTIONS = 32  # lines of a placeholder reply with other questions; the method uses as many as it needs
_CELL = "-cell-"  # replaced by a key of the retrieval options of a cell


class PlannedCalls(NamedTuple):
    """Number of planned calls, and their tokens."""

    calls: int = 0
    usage: Usage = Usage()

    def plus(self, other: PlannedCalls) -> PlannedCalls:
        """The sum with other planned calls."""
        return PlannedCalls(self.calls + other.calls, self.usage.plus(other.usage))


class PlannedItem(NamedTuple):
    """The number of unshared calls of an item, those of judges included, or why it cannot be answered."""

    calls: int
    failure: str | None


class DryRun(NamedTuple):
    """The planned items with their unshared calls, and the shared calls by model.

    `embedded` is the number of tokens to embed, by embedder that costs money.
    """

    items: Sequence[PlannedItem]
    models: Mapping[str, PlannedCalls]
    embedded: Mapping[str, int]


def dry_run(
    resolved: ResolvedExperiment,
    cache: WorkCache,
    items: Sequence[WorkItem],
    *,
    costly: Sequence[str] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> DryRun:
    """Count the calls that a run would make.

    Args:
        resolved: The experiment.
        cache: The cache of known replies; splits, vectors and retrievals are stored in it.
        items: The items to plan.
        costly: Embedders to replace with the packaged one.
        on_progress: Called with the number of planned items, and the number of all items.
    """
    stand_ins = {name: _StandIn(resolved.embedders[name], cache) for name in costly}
    embedders: dict[str, Any] = {**resolved.embedders, **stand_ins}
    placeholders = _Placeholders(cache, resolved.experiment)
    library = _DryLibrary(resolved, placeholders, embedders=embedders)
    engine = _DryEngine(resolved, library, placeholders, placeholders, Ledger(Limits(), Spent()))
    engine.costly = frozenset(costly)
    planned: list[PlannedItem] = []
    try:
        for number, outcome in enumerate(engine.run(items), 1):
            failure = None if outcome.error is None else named_error(outcome.error)
            planned.append(PlannedItem(len(outcome.calls) + len(outcome.metric_calls), failure))
            if on_progress is not None:
                on_progress(number, len(items))
    finally:
        library.close()
    return DryRun(planned, placeholders.models, {name: one.tokens for name, one in stand_ins.items()})


class _StandIn:
    """The packaged embedder in place of one that costs money; counts the tokens that the other would embed."""

    def __init__(self, replaced: ExperimentEmbedder, cache: WorkCache) -> None:
        self._local = EmbedderSpec(LOCAL).open()
        self._replaced = replaced
        self._cache = cache
        self.name = f"{self._local.name} instead of {replaced.name}"
        self.tokenizer = replaced.tokenizer
        self.tokens = 0

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        self._count(texts, "question")
        return self._local.embed_questions(texts)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        self._count(texts, "document")
        return self._local.embed_documents(texts)

    def _count(self, texts: Sequence[str], kind: Kind) -> None:
        stored = self._cache.get(VectorRecord, [(self._replaced.name, key) for key in text_keys(texts, kind)])
        self.tokens += sum(
            self.tokenizer.count(text) for text, known in zip(texts, stored, strict=True) if known is None
        )


class _DryLibrary(Library):
    """A library for placeholder replies.

    Questions and answers generated by a model are placeholders, so they are not embedded or searched for. A generated
    question gets the context of the original question, and all answers have a cosine similarity of 1.
    """

    def contexts(self, cell: Cell, question: Question, texts: Sequence[str]) -> list[Context]:
        """The context of the original question, repeated for each question text."""
        return super().contexts(cell, question, [question.text]) * len(texts)

    def vectors(self, cell: Cell, questions: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:  # noqa: ARG002
        """Equal vectors, of shape (number of texts, 1)."""
        return np.ones((len(questions), 1), np.float32), np.ones((len(texts), 1), np.float32)


class _DryEngine(Engine):
    """An engine that makes generated questions differ between cells with different retrieval options.

    Such cells retrieve different contexts, so their calls cannot be shared. This way the plan never underestimates the
    number of calls. Embedders with a stand-in would retrieve different contexts, too.
    """

    costly: frozenset[str] = frozenset()

    def _key(self, identity: str, prompt: Prompt, cell: Cell) -> str:
        return super()._key(f"{identity} {cell.embedder}" if cell.embedder in self.costly else identity, prompt, cell)

    def _take_replies(self, work: WorkInProgress) -> tuple[Completion | None, ...]:
        replies = super()._take_replies(work)
        cell = work.outcome.item.cell
        options = {name: value for name, value in vars(cell.context_options).items() if name != "count_tokens"}
        found = key_of("found", list(cell.split), cell.embedder, list(search_of(cell)), options)
        return tuple(
            replace(reply, text=reply.text.replace(_CELL, found)) if reply is not None and step == _VARIANTS else reply
            for (step, _), reply in zip(work.requested, replies, strict=True)
        )


class _Placeholders:
    """A `Caller` that replies to each call with a placeholder, and a `WorkCache` that contains these replies.

    Placeholders are generated when they are read, to save memory.
    """

    def __init__(self, below: WorkCache, experiment: Experiment) -> None:
        self._below = below
        self._specs = experiment.models
        self._count = experiment.token_counter
        self._begun: dict[str, tuple[str, Usage]] = {}  # step and tokens, by key of the call
        self._made: deque[Made] = deque()
        self.models: dict[str, PlannedCalls] = {}

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        if kind is not Reply:
            return self._below.get(kind, keys)
        found: list[Any] = self._below.get(kind, keys)
        placeholders: list[Any] = [self._reply(key) if key in self._begun else None for key in keys]
        return [new or old for new, old in zip(placeholders, found, strict=True)]

    def put(self, records: Sequence[Record]) -> list[Record]:
        return self._below.put(records)

    @property
    def running(self) -> int:
        return len(self._made)

    def begin(self, call: PendingCall) -> None:
        step, spec = call.prompt.step, self._specs.get(call.model)
        usage = UNKNOWN_USAGE
        if spec is not None:
            output = _REPLY if spec.max_reply_tokens is None else spec.max_reply_tokens
            usage = Usage(count(call.prompt.text, self._count), output, estimated=True)
        self._begun[call.key] = step, usage
        self.models[call.model] = self.models.get(call.model, PlannedCalls()).plus(PlannedCalls(1, usage))
        self._made.append(Made(call, self._reply(call.key).completion, Spent()))

    def take(self) -> list[Made]:
        return [self._made.popleft()]

    def _reply(self, key: str) -> Reply:
        step, usage = self._begun[key]
        return Reply(key, "", step, _placeholder(key, step, usage.output_tokens), usage, None, 0.0)


def _placeholder(key: str, step: str, tokens: int) -> str:
    """A reply in the format that the step expects; contains the key of the call, so that replies are unique."""
    if step == "route":
        return "unanswerable"
    if step == _VARIANTS:
        return "\n".join(f"What is {key}{_CELL}{number}?" for number in range(1, _QUESTIONS + 1))
    if step == "pipeline":
        return json.dumps({"answer": key, "chunks": None})
    text = f"{key} {'word ' * max(0, tokens - 8)}".rstrip()
    return f"{text}\nConfidence: 50" if step == "rerank" else text
