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
from oprag.compare.running.work_item import Outcome
from oprag.compare.spec.grid import Cell
from oprag.context import Context
from oprag.methods.answer import Answer

__all__ = ["Recorder"]

_CHUNKS = 50_000  # in all contexts in memory
_LONGEST = 2_000  # characters of an error message


class _About(NamedTuple):
    """The record of a context and what its scores need; several methods share it."""

    context: Context
    record: ContextRecord
    tokens: int
    embedder_tokens: int
    spans: Sequence[tuple[str, int, int]]
    ranked: Sequence[int]
    scores: dict[Hashable, float | bool | None]


class Recorder:
    """Makes records of answers, with their scores."""

    def __init__(self, resolved: ResolvedExperiment, library: Library, cache: WorkCache) -> None:
        experiment, embedder = resolved.experiment, resolved.score_embedder
        self._data = experiment.data
        self._library = library
        self._scorer = Scorer(resolved.metrics, None if embedder is None else VectorSource(embedder, cache))
        self._about: Recent[_About] = Recent(
            _CHUNKS, lambda about: 1 + len(about.context.kept) + len(about.context.dropped)
        )
        self._lengths: dict[tuple[str, tuple[str, ...]], int] = {}
        self._found: dict[Hashable, frozenset[int]] = {}

    def records(self, outcomes: Sequence[Outcome]) -> list[AnswerRecord]:
        """The records of these outcomes; those that failed come first."""
        answered = [(outcome, outcome.answer) for outcome in outcomes if outcome.answer is not None]
        scored = self._scorer.scores([self._scored(outcome, answer) for outcome, answer in answered])
        records = [self._failed(outcome) for outcome in outcomes if outcome.answer is None]
        for (outcome, answer), (scores, notes) in zip(answered, scored, strict=True):
            records.append(self._answered(outcome, answer, scores, notes))
        return records

    def _answered(
        self, outcome: Outcome, answer: Answer, scores: Mapping[str, float], notes: Sequence[str]
    ) -> AnswerRecord:
        cell = outcome.item.cell
        context = answer.context
        about = None if context is None else self._about_context(cell, outcome.item.question, context)
        return AnswerRecord(
            cell=outcome.item.cell_key,
            question=outcome.item.question_key,
            text=answer.text,
            notes=(*answer.notes, *notes, *outcome.notes),
            route=answer.route,
            calls=outcome.calls,
            usage=answer.usage,
            embedded_tokens=self._library.embedded_tokens(cell, outcome.embedded),
            context_tokens=None if about is None else about.tokens,
            context_embedder_tokens=None if about is None else about.embedder_tokens,
            context_chunks=None if context is None else len(context.kept),
            context=None if about is None else about.record,
            scores={**scores, **outcome.judged},
            metric_calls=outcome.metric_calls,
        )

    def _failed(self, outcome: Outcome) -> AnswerRecord:
        error = outcome.error
        # The error of the model's client says more than that of the method that it ended.
        cause = error.__cause__ or error if error is not None else None
        return AnswerRecord(
            cell=outcome.item.cell_key,
            question=outcome.item.question_key,
            error=error_name(cause),
            message=error_message(error, _LONGEST),
            calls=outcome.calls,
        )

    def _scored(self, outcome: Outcome, answer: Answer) -> ScoredAnswer:
        cell, question = outcome.item.cell, outcome.item.question
        about = None
        if answer.context is not None:
            about = self._about_context(cell, question, answer.context)
        return ScoredAnswer(
            question=question,
            method=cell.method,
            text=answer.text,
            context=answer.context,
            spans=() if about is None else about.spans,
            ranked=() if about is None else about.ranked,
            relevant=frozenset() if about is None else self._relevant(cell, question),
            k=cell.context_options.k,
            tokens_read=sum(cell.context_options.count_tokens(call.prompt.text) for call in answer.calls),
            tokens_of_sources=self._length(cell, question),
            context_scores={} if about is None else about.scores,
        )

    def _about_context(self, cell: Cell, question: Question, context: Context) -> _About:
        def make() -> _About:
            index = self._library.index(cell, question.documents)
            rows = [int(chunk.id or 0) for chunk in context.kept]
            kept = [(row, chunk.rank, chunk.similarity) for row, chunk in zip(rows, context.kept, strict=True)]
            dropped: dict[str, int] = Counter(str(drop.reason) for drop in context.dropped)
            ranked = sorted(context.kept, key=attrgetter("rank"))
            return _About(
                context,
                ContextRecord(key_of("context", index.key, kept, dropped), index.key, kept, dropped),
                context.tokens,
                sum(index.pieces[row].tokens for row in rows),
                [index.spans[row] for row in rows],
                [int(chunk.id or 0) for chunk in ranked if chunk.neighbor_of is None],
                {},
            )

        # It holds the context, so no other one can have the same id.
        return self._about.get(id(context), make)

    def _relevant(self, cell: Cell, question: Question) -> frozenset[int]:
        """The rows of the chunks that have a character of the evidence."""
        if not question.evidence:
            return frozenset()
        index = self._library.index(cell, question.documents)
        key = index.key, question.evidence
        if key not in self._found:
            rows = [row for name in {one.document for one in question.evidence} for row in index.rows_of.get(name, ())]
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
