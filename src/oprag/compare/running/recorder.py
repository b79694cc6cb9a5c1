"""Conversion of outcomes to answer records, with scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from oprag.compare.controls import kind_of
from oprag.compare.data.data_set import Question
from oprag.compare.db.cache import WorkCache
from oprag.compare.db.keys import key_of
from oprag.compare.db.records import AnswerRecord, ContextRecord
from oprag.compare.db.text import error_message, error_name, named_error
from oprag.compare.metrics.contexts import touching
from oprag.compare.metrics.registry import COSINE, METRICS, Metric, ScoredAnswer
from oprag.compare.pipelines import FoundChunk
from oprag.compare.running.library import Library
from oprag.compare.running.lru_cache import LruCache
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.vectors import VectorSource
from oprag.compare.running.work_item import Outcome, WorkItem
from oprag.compare.spec.grid import Cell
from oprag.context import Context
from oprag.embedding.embedder import Embedder
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.methods.answer import Answer

__all__ = ["Recorder", "Scorer"]

_MAX_CHUNKS = 50_000  # of all contexts in memory
_MAX_ERROR = 2_000  # characters of an error message


class _ContextInfo(NamedTuple):
    """A context, its record, and inputs of its scores; shared by several methods."""

    context: Context | None = None
    record: ContextRecord | None = None
    tokens: int | None = None
    embedder_tokens: int | None = None
    chunks: int | None = None
    spans: Sequence[tuple[str, int, int]] = ()
    ranked: Sequence[int] = ()
    scores: dict[Hashable, float | bool | None] = {}  # noqa: RUF012 - the default is never written to


class Recorder:
    """Makes answer records with scores."""

    def __init__(self, resolved: ResolvedExperiment, library: Library, cache: WorkCache) -> None:
        embedder = resolved.score_embedder
        self._library = library
        self._scorer = Scorer(resolved.metrics, None if embedder is None else VectorSource(embedder, cache))
        self._contexts: LruCache[_ContextInfo] = LruCache(_MAX_CHUNKS, _weight)
        self._lengths: dict[tuple[str, tuple[str, ...]], int] = {}
        self._relevant_rows: dict[Hashable, frozenset[int]] = {}

    def records(self, outcomes: Sequence[Outcome]) -> list[AnswerRecord]:
        """The records of the outcomes; failures come first."""
        failed = [_failed(outcome) for outcome in outcomes if outcome.answer is None]
        answered = [
            (outcome, answer, self._info(outcome, answer))
            for outcome in outcomes
            if (answer := outcome.answer) is not None
        ]
        scored = self._scorer.scores([self._scored(*one) for one in answered])
        return failed + [self._answered(*one, *score) for one, score in zip(answered, scored, strict=True)]

    def _answered(
        self, outcome: Outcome, answer: Answer, info: _ContextInfo, scores: Mapping[str, float], notes: Sequence[str]
    ) -> AnswerRecord:
        item = outcome.item
        return AnswerRecord(
            cell=item.cell_key,
            question=item.question_key,
            text=answer.text,
            notes=(*answer.notes, *notes, *outcome.notes),
            route=answer.route,
            calls=len(outcome.calls),
            **answer.usage._asdict(),
            embedded_tokens=self._library.embedded_tokens(item.cell, outcome.embedded),
            context_tokens=info.tokens,
            context_embedder_tokens=info.embedder_tokens,
            context_chunks=info.chunks,
            context=info.record,
            scores={**scores, **outcome.judged},
            replies=[*outcome.calls, *outcome.metric_calls],
            **({} if outcome.measurement is None else outcome.measurement._asdict()),
        )

    def _scored(self, outcome: Outcome, answer: Answer, info: _ContextInfo) -> ScoredAnswer:
        cell, question = outcome.item.cell, outcome.item.question
        return ScoredAnswer(
            question=question,
            method=cell.method,
            text=answer.text,
            context=info.context,
            spans=info.spans,
            ranked=info.ranked,
            relevant=self._relevant(cell, question) if info.context is not None else frozenset(),
            k=cell.context_options.k,
            tokens_read=sum(cell.context_options.count_tokens(call.prompt.text) for call in answer.calls),
            tokens_of_sources=self._length(cell, question),
            context_scores=info.scores,
        )

    def _info(self, outcome: Outcome, answer: Answer) -> _ContextInfo:
        if kind_of(outcome.item.cell.method).own:
            return self._returned_info(outcome, answer.parsed)
        return self._context_info(outcome.item, answer.context)

    def _returned_info(self, outcome: Outcome, chunks: Sequence[FoundChunk] | None) -> _ContextInfo:
        """What is known of the chunks that an own pipeline returned."""
        if chunks is None:
            return _ContextInfo()
        cell, question = outcome.item.cell, outcome.item.question
        texts = {name: self._library.whole_text(cell, name) for name in question.documents}
        found = [_span_in(texts, chunk) for chunk in chunks]
        spans = [span for span in found if span is not None]
        if missing := len(found) - len(spans):
            outcome.notes.append(f"{missing:,} of {len(found):,} chunks are not in the documents of the question")
        tokens = sum(cell.context_options.count_tokens(chunk.text) for chunk in chunks)
        return _ContextInfo(tokens=tokens, chunks=len(chunks), spans=spans, scores={})

    def _context_info(self, item: WorkItem, context: Context | None) -> _ContextInfo:
        if context is None:
            return _ContextInfo()

        def make() -> _ContextInfo:
            index = self._library.index(item.cell, item.question.documents)
            rows = [int(chunk.id or 0) for chunk in context.kept]
            kept = [(row, chunk.rank, chunk.similarity) for row, chunk in zip(rows, context.kept, strict=True)]
            dropped: dict[str, int] = Counter(str(drop.reason) for drop in context.dropped)
            ranked = sorted(context.kept, key=attrgetter("rank"))
            return _ContextInfo(
                context,
                ContextRecord(key_of("context", index.key, kept, dropped), index.key, kept, dropped),
                context.tokens,
                sum(index.pieces[row].tokens for row in rows),
                len(kept),
                [index.spans[row] for row in rows],
                [int(chunk.id or 0) for chunk in ranked if chunk.neighbor_of is None],
                {},
            )

        # The cached value references the context, so its id cannot be reused.
        return self._contexts.get(id(context), make)

    def _relevant(self, cell: Cell, question: Question) -> frozenset[int]:
        """The rows of the chunks that overlap the evidence."""
        if not question.evidence:
            return frozenset()
        index = self._library.index(cell, question.documents)
        key = index.key, question.evidence
        if key not in self._relevant_rows:
            documents = {one.document for one in question.evidence}
            rows = [row for row, span in enumerate(index.spans) if span[0] in documents]
            touched = touching([index.spans[row] for row in rows], question.evidence)
            self._relevant_rows[key] = frozenset(rows[place] for place in touched)
        return self._relevant_rows[key]

    def _length(self, cell: Cell, question: Question) -> int:
        """The number of tokens of the whole documents of a question."""
        key = cell.data, question.documents
        if key not in self._lengths:
            texts = (self._library.whole_text(cell, name) for name in question.documents)
            self._lengths[key] = sum(cell.context_options.count_tokens(text) for text in texts)
        return self._lengths[key]


def _span_in(texts: Mapping[str, str], chunk: FoundChunk) -> tuple[str, int, int] | None:
    """The place of a returned chunk: at its offset, else where its text first occurs."""
    length = len(chunk.text)
    # The document that its source names comes first.
    names = sorted(texts, key=lambda name: not (chunk.source or "").endswith(name))
    for name in names if length else ():
        start = -1 if chunk.start is None else chunk.start
        if start < 0 or texts[name][start : start + length] != chunk.text:
            start = texts[name].find(chunk.text)
        if start >= 0:
            return name, start, start + length
    return None


def _weight(info: _ContextInfo) -> int:
    return 1 + (0 if info.context is None else len(info.context.kept) + len(info.context.dropped))


def _failed(outcome: Outcome) -> AnswerRecord:
    # The client's error, which is the cause, is more specific than the error of the method.
    cause = outcome.error and (outcome.error.__cause__ or outcome.error)
    return AnswerRecord(
        cell=outcome.item.cell_key,
        question=outcome.item.question_key,
        error=error_name(cause),
        message=error_message(outcome.error, _MAX_ERROR),
        calls=len(outcome.calls),
        replies=outcome.calls,
    )


class Scorer:
    """Scores answers with the metrics of an experiment.

    Args:
        metrics: Metrics of the experiment.
        embedder: Embeds answers and gold answers (as documents) for their cosine similarity; the same one for all
            cells.
    """

    def __init__(self, metrics: Iterable[Metric], embedder: Embedder | None = None) -> None:
        self._metrics = list(metrics)
        self._embedder = embedder

    def scores(self, answers: Sequence[ScoredAnswer]) -> list[tuple[dict[str, float], list[str]]]:
        """Score each answer with each metric that applies; notes explain missing scores."""
        return [self._scores(answer) for answer in self._with_vectors(answers)]

    def _with_vectors(self, answers: Sequence[ScoredAnswer]) -> Sequence[ScoredAnswer]:
        """Add the vectors needed for cosine similarity, embedding all texts in one batch."""
        cosine = METRICS[COSINE]
        if self._embedder is None or cosine not in self._metrics:
            return answers
        texts: dict[str, None] = {}
        for one in answers:
            if cosine.applies(one) and one.text.strip():
                texts |= dict.fromkeys((one.text, *one.question.answers))
        if not texts:
            return answers
        vectors = dict(zip(texts, self._embedder.embed_documents(list(texts)), strict=True))
        return [replace(one, vectors=vectors) for one in answers]

    def _scores(self, given: ScoredAnswer) -> tuple[dict[str, float], list[str]]:
        scores: dict[str, float] = {}
        notes: list[str] = []
        for metric in self._metrics:
            if not metric.applies(given):
                continue
            try:
                value = _score(metric, given)
                if value is not None:
                    scores[metric.name] = _as_number(value)
            except OptionError as error:
                notes.append(f"no {metric.name}: {error}")
            except Exception as error:
                if not metric.function:
                    raise
                # An error of a custom metric only concerns this answer.
                notes.append(f"no {metric.name}: {named_error(error, _MAX_ERROR)}")
        return scores, notes


def _as_number(value: Any) -> float:
    """Convert a score to a number.

    Raises:
        OptionError: The score is not a finite number, and would make all means NaN or infinite.
    """
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"it returned {describe(value)}; a metric must return a finite number or None", value)
    return number


def _score(metric: Metric, given: ScoredAnswer) -> float | bool | None:
    if metric.of != "context":
        return metric.score(given)
    # Shared by all answers with the same context. Questions with the same wording may have different evidence, and a
    # custom metric may read the whole question, so both are part of the key.
    key = metric.name, given.question if metric.function else given.question.evidence
    if key not in given.context_scores:
        given.context_scores[key] = metric.score(given)
    return given.context_scores[key]
