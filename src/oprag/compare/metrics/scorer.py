"""Scoring of answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from oprag.compare.db.text import named_error
from oprag.compare.metrics.registry import COSINE, METRICS, Metric, ScoredAnswer
from oprag.embedding.embedder import Embedder
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["Scorer"]

_MAX_MESSAGE_LENGTH = 2_000  # maximum characters of an error message of a custom metric


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
                notes.append(f"no {metric.name}: {named_error(error, _MAX_MESSAGE_LENGTH)}")
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
