"""Conversion of outcomes to answer records, with scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from oprag._internal.masking import describe
from oprag.compare.data.data_set import Question
from oprag.compare.db.records import (
    AnswerRecord,
    ContextRecord,
    KeptChunk,
    WorkCache,
    error_message,
    error_name,
    named_error,
)
from oprag.compare.experiment_methods import FoundChunk, kind_of
from oprag.compare.grid import Cell
from oprag.compare.metrics.functions import touching
from oprag.compare.metrics.registry import COSINE, METRICS, Metric, ScoredAnswer
from oprag.compare.running.engine import Outcome
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.retrieval import Retrieval, VectorSource
from oprag.embedding.embedder import Embedder
from oprag.errors import OptionError
from oprag.methods.answer import Answer
from oprag.methods.replies import without_reasoning
from oprag.methods.run import EMPTY

__all__ = ["Recorder", "score_all"]

_MAX_ERROR = 2_000  # characters of an error message
_SEARCHED = 2  # chunks of an own pipeline that are searched for in all documents


class _Found(NamedTuple):
    """The chunks that an answer was made from."""

    stored: Mapping[str, Any] = {}  # fields of the record
    scored: Mapping[str, Any] = {}  # inputs of the scores


class Recorder:
    """Makes answer records with scores."""

    def __init__(self, prepared: PreparedExperiment, retrieval: Retrieval, cache: WorkCache) -> None:
        embedder = prepared.score_embedder
        self._retrieval = retrieval
        self._metrics = prepared.metrics
        self._embedder = None if embedder is None else VectorSource(embedder, cache)
        self._lengths: dict[tuple[str, tuple[str, ...]], int] = {}
        self._relevant_rows: dict[Hashable, frozenset[int]] = {}

    def records(self, outcomes: Sequence[Outcome]) -> list[AnswerRecord]:
        """The records of the outcomes; failures come first."""
        failed = [_failed(outcome) for outcome in outcomes if outcome.answer is None]
        answered = [
            (outcome, answer, self._found(outcome, answer))
            for outcome in outcomes
            if (answer := outcome.answer) is not None
        ]
        scored = score_all(self._metrics, [self._scored(*one) for one in answered], self._embedder)
        return failed + [self._answered(*one, *score) for one, score in zip(answered, scored, strict=True)]

    def _answered(
        self, outcome: Outcome, answer: Answer, found: _Found, scores: Mapping[str, float], notes: Sequence[str]
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
            embedded_tokens=self._retrieval.embedded_tokens(item.cell, outcome.embedded),
            scores={**scores, **outcome.judged},
            replies=[*outcome.calls, *outcome.metric_calls],
            **({} if outcome.measurement is None else outcome.measurement._asdict()),
            **found.stored,
        )

    def _scored(self, outcome: Outcome, answer: Answer, found: _Found) -> ScoredAnswer:
        cell, question = outcome.item.cell, outcome.item.question
        return ScoredAnswer(
            question=question,
            method=cell.method,
            text=without_reasoning(answer.text),
            relevant=self._relevant(cell, question) if "context" in found.scored else frozenset(),
            k=cell.context_options.k,
            tokens_read=sum(cell.context_options.count_tokens(call.prompt.text) for call in answer.calls),
            tokens_of_sources=self._length(cell, question),
            **found.scored,
        )

    def _found(self, outcome: Outcome, answer: Answer) -> _Found:
        if kind_of(outcome.item.cell.method).own:
            if not without_reasoning(answer.text).strip():
                outcome.notes.append(EMPTY)
            return self._returned(outcome, answer.parsed)
        context = answer.context
        if context is None:
            return _Found()
        documents = outcome.item.question.documents
        index = self._retrieval.index(outcome.item.cell, documents)
        rows = [int(chunk.id or 0) for chunk in context.kept]
        spans = [index.spans[row] for row in rows]
        kept = [
            KeptChunk(documents.index(name), start, end, chunk.rank, chunk.similarity)
            for (name, start, end), chunk in zip(spans, context.kept, strict=True)
        ]
        dropped: dict[str, int] = Counter(str(drop.reason) for drop in context.dropped)
        ranked = sorted(context.kept, key=attrgetter("rank"))
        return _Found(
            {
                "context": ContextRecord(kept, dropped),
                "context_tokens": context.tokens,
                "context_embedder_tokens": sum(index.tokens[row] for row in rows),
                "context_chunks": len(kept),
            },
            {
                "context": context,
                "spans": spans,
                "ranked": [int(chunk.id or 0) for chunk in ranked if chunk.neighbor_of is None],
            },
        )

    def _returned(self, outcome: Outcome, chunks: Sequence[FoundChunk] | None) -> _Found:
        """What is known of the chunks that an own pipeline returned."""
        if chunks is None:
            return _Found()
        cell, question = outcome.item.cell, outcome.item.question
        texts = {name: self._retrieval.whole_text(cell, name) for name in question.documents}
        places = [_places_of(texts, chunk) for chunk in chunks]
        if missing := places.count([]):
            outcome.notes.append(f"{missing:,} of {len(chunks):,} chunks are not in the documents of the question")
        tokens = sum(cell.context_options.count_tokens(chunk.text) for chunk in chunks)
        # Chunks of other documents cover nothing. If all chunks are found nowhere, they may have been rewritten.
        located = missing < len(chunks) or not chunks or _any_of(self._retrieval.whole_texts(cell), chunks)
        return _Found(
            {"context_tokens": tokens, "context_chunks": len(chunks)}, {"spans": [*chain(*places)], "located": located}
        )

    def _relevant(self, cell: Cell, question: Question) -> frozenset[int]:
        """The rows of the chunks that overlap the evidence."""
        if not question.evidence:
            return frozenset()
        index = self._retrieval.index(cell, question.documents)
        key = cell.data, question.documents, cell.split, cell.embedder, question.evidence
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
            texts = (self._retrieval.whole_text(cell, name) for name in question.documents)
            self._lengths[key] = sum(cell.context_options.count_tokens(text) for text in texts)
        return self._lengths[key]


def _places_of(texts: Mapping[str, str], chunk: FoundChunk) -> list[tuple[str, int, int]]:
    """The places of a returned chunk: its spans or its offset, else where its text first occurs.

    White space may differ: a stitched passage has a separator where the splitter stripped white space.
    """
    length, wanted = len(chunk.text), _squeezed(chunk.text)
    # The document that its source names comes first.
    names = sorted(texts, key=lambda name: not (chunk.source or "").endswith(name)) if wanted else ()
    for name in names:
        parts = [_squeezed(texts[name][start:end]) for start, end in chunk.spans]
        if parts and all(part and part in wanted for part in parts):
            return [(name, start, end) for start, end in chunk.spans]
    for name in names:
        start = -1 if chunk.start is None else chunk.start
        if start < 0 or texts[name][start : start + length] != chunk.text:
            start = texts[name].find(chunk.text)
        if start >= 0:
            return [(name, start, start + length)]
    for name in names:
        if (first := _squeezed(texts[name]).find(wanted)) >= 0:
            offsets = [offset for offset, character in enumerate(texts[name]) if not character.isspace()]
            return [(name, offsets[first], offsets[first + len(wanted) - 1] + 1)]
    return []


def _any_of(texts: Iterable[tuple[str, str]], chunks: Sequence[FoundChunk]) -> bool:
    """Whether a chunk is from one of these documents, by its source or, of the first chunks, by its text."""
    sources = [f"/{chunk.source}" for chunk in chunks if chunk.source is not None]
    # Searching all documents takes a second per GB.
    wanted = [chunk.text for chunk in chunks[:_SEARCHED] if chunk.text.strip()]
    return any(
        any(source.endswith(f"/{name}") for source in sources) or any(one in text for one in wanted)
        for name, text in texts
    )


def _squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


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


def score_all(
    metrics: Sequence[Metric], answers: Sequence[ScoredAnswer], embedder: Embedder | None = None
) -> list[tuple[dict[str, float], list[str]]]:
    """Score each answer with each metric that applies; notes explain missing scores.

    Answers and gold answers are embedded (as documents) in one batch, by the same embedder for all cells.
    """
    if embedder is not None and (cosine := METRICS[COSINE]) in metrics:
        texts: dict[str, None] = {}
        for one in answers:
            if cosine.applies(one) and one.text.strip():
                texts |= dict.fromkeys((one.text, *one.question.answers))
        if texts:
            vectors = dict(zip(texts, embedder.embed_documents(list(texts)), strict=True))
            answers = [replace(one, vectors=vectors) for one in answers]
    return [_scores(metrics, one) for one in answers]


def _scores(metrics: Sequence[Metric], given: ScoredAnswer) -> tuple[dict[str, float], list[str]]:
    scores: dict[str, float] = {}
    notes: list[str] = []
    for metric in metrics:
        if not metric.applies(given):
            continue
        try:
            value = metric.score(given)
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
    """Convert a score to a number; reject others, which would make all means NaN or infinite."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"it returned {describe(value)}; a metric must return a finite number or None", value)
    return number
