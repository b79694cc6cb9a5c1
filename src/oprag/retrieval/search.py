"""Ranking the chunks of an index for questions: by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oprag.checks import check_choice
from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.retrieval.bm25 import BM25Search
from oprag.retrieval.cosine import CosineSearch, top
from oprag.retrieval.question_vectors import QuestionVectors
from oprag.retrieval.rrf import rrf

__all__ = ["Search", "SearchKind"]

SearchKind = Literal["dense", "bm25", "hybrid"]
"""How an index is searched: by the cosine of vectors, by the words of the question, or by both, fused by rank."""

Scores = NDArray[np.floating[Any]]


class Search:
    """Finds chunks; what a kind of search needs is made when it is first asked for.

    Args:
        chunks: The chunks.
        vectors: Their unit vectors, of shape (number of chunks, dimension).
        questions: Embeds questions; None where there are no vectors.
    """

    def __init__(
        self, chunks: Sequence[Chunk], vectors: NDArray[np.float32], questions: QuestionVectors | None
    ) -> None:
        self._chunks = chunks
        self._vectors = vectors
        self._questions = questions

    def check(self, kind: Any) -> None:
        """Refuse a kind of search that cannot be used here.

        Raises:
            OptionError: There is no such kind of search, or it needs vectors and there are none.
        """
        check_choice("search", kind, get_args(SearchKind))
        if kind != "bm25" and self._questions is None:
            raise OptionError(
                f'search="{kind}" needs vectors, and this index was made without an embedder; make it with '
                'one, or use search="bm25"',
                kind,
            )

    def hits(self, questions: Sequence[str], k: int, kind: SearchKind) -> list[list[Chunk]]:
        """For each question the k best chunks, best first."""
        if not questions or not self._chunks:
            return [[] for _ in questions]
        return [self._best(scores, k, kind) for scores in self._scores(questions, kind)]

    def _scores(self, questions: Sequence[str], kind: SearchKind) -> Iterable[Scores]:
        """For each question the scores of all chunks."""
        if kind == "bm25" or self._questions is None:
            return map(self._by_words.scores, questions)
        cosines = self._by_cosine.scores(self._questions.of(questions))
        if kind == "dense":
            return cosines
        by_words = map(self._by_words.scores, questions)
        return map(_fused, cosines, by_words)

    def _best(self, scores: Scores, k: int, kind: SearchKind) -> list[Chunk]:
        indices = top(scores, k)
        if kind == "bm25":
            # The others have no word of the question.
            indices = indices[scores[indices] > 0]
        hits: list[Chunk] = []
        for rank, (index, score) in enumerate(zip(indices.tolist(), scores[indices].tolist(), strict=True)):
            hit = object.__new__(Chunk)
            hit.__dict__.update(self._chunks[index].__dict__, rank=rank, score=score)
            if self._questions is not None:
                hit.__dict__["vector"] = self._vectors[index]
            hits.append(hit)
        return hits

    @cached_property
    def _by_cosine(self) -> CosineSearch:
        return CosineSearch(self._vectors)

    @cached_property
    def _by_words(self) -> BM25Search:
        return BM25Search([chunk.text for chunk in self._chunks])


def _fused(cosines: Scores, by_words: Scores) -> Scores:
    """Both whole rankings as one, whatever k: so a larger k adds hits behind those of a smaller one."""
    found = top(by_words, len(by_words))
    return rrf([top(cosines, len(cosines)), found[by_words[found] > 0]], len(cosines))
