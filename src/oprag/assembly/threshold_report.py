"""Cosine similarities of an embedder on real questions, and suggested thresholds.

A threshold that works for one embedder can drop every chunk with another: unrelated texts have a cosine similarity of
about 0.3 with static embeddings, 0.1 with sentence encoders, and never below 0.6 with some models. So thresholds are
derived from measured values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oprag.assembly.thresholds import chunk_vectors, find_repeats, question_row
from oprag.chunk import counted, quoted
from oprag.context import Context
from oprag.errors import EmbeddingError, QueryError
from oprag.text_table import table

__all__ = ["ThresholdReport", "report_thresholds"]

_QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
# Reasons for which chunks are dropped before thresholds apply.
_NO_CANDIDATES = ("max_candidates", "duplicate", "on_missing_position")
_STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Shares of chunks that the suggested thresholds drop: the least similar 25% and the most redundant 5%.
_DISSIMILAR = 0.25
_REDUNDANT = 0.05


@dataclass(frozen=True, eq=False)
class ThresholdReport:
    """Cosine similarities of the retrieved chunks of several questions; prints as tables with suggested thresholds.

    Attributes:
        embedder: Identity of the embedder.
        similarities: For each question, the cosine similarity of each retrieved chunk to the question, best-ranked
            first; of shape (chunks,).
        nearest: For each question, the highest cosine similarity of each chunk to a better-ranked one, without the
            best-ranked chunk; of shape (chunks - 1,).
        kept: For each redundancy threshold from 0.1 to 0.9 in steps of 0.1, the number of chunks of all questions that
            it keeps.
    """

    embedder: str
    similarities: tuple[NDArray[np.float32], ...]
    nearest: tuple[NDArray[np.float32], ...]
    kept: tuple[int, ...]

    @property
    def similarity_threshold(self) -> float:
        """Suggested threshold: drops the least similar 25% of the chunks, but keeps at least one for each question."""
        quarter = float(np.quantile(np.concatenate(self.similarities), _DISSIMILAR))
        # Round down, so that rounding does not empty a context.
        return math.floor(100 * min(quarter, *(float(cosines.max()) for cosines in self.similarities))) / 100

    @property
    def redundancy_threshold(self) -> float:
        """Suggested threshold: drops the 5% of the chunks that are most similar to a better-ranked one."""
        nearest = np.concatenate(self.nearest)
        if not len(nearest):
            return 1.0
        return min(1.0, math.ceil(100 * float(np.quantile(nearest, 1 - _REDUNDANT))) / 100)

    def __repr__(self) -> str:
        questions = counted(len(self.similarities), "question")
        chunks = counted(sum(map(len, self.similarities)), "retrieved chunk")
        return f"ThresholdReport({quoted(self.embedder)}, {questions}, {chunks})"

    def __str__(self) -> str:
        similarities, nearest = np.concatenate(self.similarities), np.concatenate(self.nearest)
        chunks = len(similarities)
        lines = [f"{self.embedder}: {len(self.similarities):,} questions, {chunks:,} retrieved chunks", ""]
        lines += table(
            ["similarity of a chunk to", "min", *(f"{share:.0%}" for share in _QUANTILES[1:-1]), "max"],
            [["the question", *_quantiles(similarities)], ["the nearest better-ranked chunk", *_quantiles(nearest)]],
        )
        empty = [sum(not (cosines >= step).any() for cosines in self.similarities) for step in _STEPS]
        above = [float((similarities >= step).mean()) for step in _STEPS]
        lines += [
            "",
            *table(
                ["threshold", *(f"{step:g}" for step in _STEPS)],
                [
                    ["similarity_threshold keeps", *(f"{share:.0%}" for share in above)],
                    ["contexts that it empties", *map(str, empty)],
                    ["redundancy_threshold keeps", *(f"{kept / chunks:.0%}" for kept in self.kept)],
                ],
            ),
        ]
        suggested = (
            f"suggested: similarity_threshold={self.similarity_threshold:g} (drops the least similar 25%, empties no "
            f"context), redundancy_threshold={self.redundancy_threshold:g} (drops the most redundant 5%)"
        )
        return "\n".join([*lines, "", suggested])


def report_thresholds(contexts: Iterable[Context], embedder: str = "embedder") -> ThresholdReport:
    """Create a threshold report from contexts that were retrieved with vectors."""
    similarities: list[NDArray[np.float32]] = []
    nearest: list[NDArray[np.float32]] = []
    kept = np.zeros(len(_STEPS), dtype=int)
    for context in contexts:
        if context.inputs is None or not context.inputs.chunks:
            continue
        out = {drop.chunk.rank for drop in context.dropped if drop.reason in _NO_CANDIDATES}
        candidates = [chunk for chunk in context.inputs.chunks if chunk.rank not in out and chunk.text.strip()]
        if not candidates:
            continue
        if context.inputs.question_vector is None:
            raise EmbeddingError("a context has no vectors; retrieve with similarity_threshold=-1", context)
        vectors = chunk_vectors(candidates)
        question = question_row(context.inputs.question_vector, vectors.shape[1])
        similarities.append(np.clip(vectors @ question, -1, 1))
        nearest.append(_nearest_better(vectors))
        kept += [int((find_repeats(vectors, step).twins < 0).sum()) for step in _STEPS]
    if not similarities:
        raise QueryError("nothing to report: no chunks were retrieved for any question", None)
    return ThresholdReport(embedder, tuple(similarities), tuple(nearest), tuple(kept.tolist()))


def _nearest_better(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """For each row except the first, the highest cosine similarity to an earlier row."""
    nearest = [(vectors[:row] @ vectors[row]).max() for row in range(1, len(vectors))]
    return np.clip(np.array(nearest, dtype=np.float32), -1, 1)


def _quantiles(values: NDArray[np.float32]) -> Sequence[str]:
    if not len(values):
        return ["-"] * len(_QUANTILES)
    return [f"{value:.3f}" for value in np.quantile(values, _QUANTILES)]
