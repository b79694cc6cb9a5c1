"""The scores of answers."""

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

_LONGEST = 2_000  # characters of an error of a user's own function


class Scorer:
    """Scores answers by the metrics of an experiment.

    Args:
        metrics: The metrics.
        embedder: Embeds answers and gold answers for their cosine, all as documents; the same one in all cells.
    """

    def __init__(self, metrics: Iterable[Metric], embedder: Embedder | None = None) -> None:
        self._metrics = list(metrics)
        self._embedder = embedder

    def scores(self, answers: Sequence[ScoredAnswer]) -> list[tuple[dict[str, float], list[str]]]:
        """The value of each metric that applies to each answer, and notes on why it has none where it should."""
        return [self._scores(answer) for answer in self._with_vectors(answers)]

    def _with_vectors(self, answers: Sequence[ScoredAnswer]) -> Sequence[ScoredAnswer]:
        """The answers with the vectors that their cosine needs, which are made for all of them at once."""
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
                # Whatever a function of the user's raises belongs to this answer.
                notes.append(f"no {metric.name}: {named_error(error, _LONGEST)}")
        return scores, notes


def _as_number(value: Any) -> float:
    """The value of a score.

    Raises:
        OptionError: It is not a finite number: one such value would be the mean of all.
    """
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"it is {describe(value)}, not a number", value)
    return number


def _score(metric: Metric, given: ScoredAnswer) -> float | bool | None:
    if metric.of != "context":
        return metric.score(given)
    # It is the same for all answers from a context. Two questions with the same words may have other evidence, and a
    # function of the user's may read all of a question.
    place = metric.name, given.question if metric.function else given.question.evidence
    if place not in given.context_scores:
        given.context_scores[place] = metric.score(given)
    return given.context_scores[place]
