"""From the outcomes of questions to the records of their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from oprag.compare.data.data_set import Question
from oprag.compare.db.cache import WorkCache
from oprag.compare.db.keys import key_of
from oprag.compare.db.records import AnswerRecord, ContextRecord
from oprag.compare.db.text import error_message, error_name
from oprag.compare.metrics.contexts import touching
from oprag.compare.metrics.registry import ScoredAnswer
from oprag.compare.metrics.scorer import Scorer
from oprag.compare.running.library import Library
from oprag.compare.running.recent import Recent
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.vectors import VectorSource
from oprag.compare.running.work_item import Outcome, WorkItem
from oprag.compare.spec.grid import Cell
from oprag.context import Context
from oprag.methods.answer import Answer

__all__ = ["Recorder"]

_CHUNKS = 50_000  # in all contexts in memory
_LONGEST = 2_000  # characters of an error message


class _About(NamedTuple):
    """The record of a context and what its scores need; several methods share it."""

    context: Context | None = None
    record: ContextRecord | None = None
    tokens: int | None = None
    embedder_tokens: int | None = None
    chunks: int | None = None
    spans: Sequence[tuple[str, int, int]] = ()
    ranked: Sequence[int] = ()
    scores: dict[Hashable, float | bool | None] = {}  # noqa: RUF012 - nothing is scored without a context


class Recorder:
    """Makes records of answers, with their scores."""

    def __init__(self, resolved: ResolvedExperiment, library: Library, cache: WorkCache) -> None:
        embedder = resolved.score_embedder
        self._library = library
        self._scorer = Scorer(resolved.metrics, None if embedder is None else VectorSource(embedder, cache))
        self._contexts: Recent[_About] = Recent(_CHUNKS, _weight)
        self._lengths: dict[tuple[str, tuple[str, ...]], int] = {}
        self._found: dict[Hashable, frozenset[int]] = {}

    def records(self, outcomes: Sequence[Outcome]) -> list[AnswerRecord]:
        """The records of these outcomes; those that failed come first."""
        failed = [_failed(outcome) for outcome in outcomes if outcome.answer is None]
        answered = [
            (outcome, answer, self._about(outcome.item, answer.context))
            for outcome in outcomes
            if (answer := outcome.answer) is not None
        ]
        scored = self._scorer.scores([self._scored(*one) for one in answered])
        return failed + [self._answered(*one, *score) for one, score in zip(answered, scored, strict=True)]

    def _answered(
        self, outcome: Outcome, answer: Answer, about: _About, scores: Mapping[str, float], notes: Sequence[str]
    ) -> AnswerRecord:
        item = outcome.item
        return AnswerRecord(
            cell=item.cell_key,
            question=item.question_key,
            text=answer.text,
            notes=(*answer.notes, *notes, *outcome.notes),
            route=answer.route,
            calls=outcome.calls,
            usage=answer.usage,
            embedded_tokens=self._library.embedded_tokens(item.cell, outcome.embedded),
            context_tokens=about.tokens,
            context_embedder_tokens=about.embedder_tokens,
            context_chunks=about.chunks,
            context=about.record,
            scores={**scores, **outcome.judged},
            metric_calls=outcome.metric_calls,
        )

    def _scored(self, outcome: Outcome, answer: Answer, about: _About) -> ScoredAnswer:
        cell, question = outcome.item.cell, outcome.item.question
        return ScoredAnswer(
            question=question,
            method=cell.method,
            text=answer.text,
            context=about.context,
            spans=about.spans,
            ranked=about.ranked,
            relevant=self._relevant(cell, question) if about.context is not None else frozenset(),
            k=cell.context_options.k,
            tokens_read=sum(cell.context_options.count_tokens(call.prompt.text) for call in answer.calls),
            tokens_of_sources=self._length(cell, question),
            context_scores=about.scores,
        )

    def _about(self, item: WorkItem, context: Context | None) -> _About:
        if context is None:
            return _About()

        def make() -> _About:
            index = self._library.index(item.cell, item.question.documents)
            rows = [int(chunk.id or 0) for chunk in context.kept]
            kept = [(row, chunk.rank, chunk.similarity) for row, chunk in zip(rows, context.kept, strict=True)]
            dropped: dict[str, int] = Counter(str(drop.reason) for drop in context.dropped)
            ranked = sorted(context.kept, key=attrgetter("rank"))
            return _About(
                context,
                ContextRecord(key_of("context", index.key, kept, dropped), index.key, kept, dropped),
                context.tokens,
                sum(index.pieces[row].tokens for row in rows),
                len(kept),
                [index.spans[row] for row in rows],
                [int(chunk.id or 0) for chunk in ranked if chunk.neighbor_of is None],
                {},
            )

        # It holds the context, so no other one can have the same id.
        return self._contexts.get(id(context), make)

    def _relevant(self, cell: Cell, question: Question) -> frozenset[int]:
        """The rows of the chunks that have a character of the evidence."""
        if not question.evidence:
            return frozenset()
        index = self._library.index(cell, question.documents)
        key = index.key, question.evidence
        if key not in self._found:
            documents = {one.document for one in question.evidence}
            rows = [row for row, span in enumerate(index.spans) if span[0] in documents]
            touched = touching([index.spans[row] for row in rows], question.evidence)
            self._found[key] = frozenset(rows[place] for place in touched)
        return self._found[key]

    def _length(self, cell: Cell, question: Question) -> int:
        """The tokens of the whole documents of a question."""
        key = cell.data, question.documents
        if key not in self._lengths:
            texts = (self._library.whole_text(cell, name) for name in question.documents)
            self._lengths[key] = sum(cell.context_options.count_tokens(text) for text in texts)
        return self._lengths[key]


def _weight(about: _About) -> int:
    return 1 + (0 if about.context is None else len(about.context.kept) + len(about.context.dropped))


def _failed(outcome: Outcome) -> AnswerRecord:
    # The error of the model's client says more than that of the method that it ended.
    cause = outcome.error and (outcome.error.__cause__ or outcome.error)
    return AnswerRecord(
        cell=outcome.item.cell_key,
        question=outcome.item.question_key,
        error=error_name(cause),
        message=error_message(outcome.error, _LONGEST),
        calls=outcome.calls,
    )
