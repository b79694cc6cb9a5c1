"""Our own index as a store: every cosine is computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oprag.compare.stores.store import FoundRow, unit_vector
from oprag.embedding.cosine import CosineSearch, as_vectors, top

__all__ = ["ExactStore"]


class ExactStore:
    """The exact ranking by cosine; of equal cosines the lowest row."""

    name = "index"

    def __init__(self) -> None:
        self._vectors: NDArray[np.float32] | None = None
        self._search: CosineSearch | None = None

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Put chunks in; of their texts nothing is kept."""
        if not texts:
            return
        known = self._vectors
        matrix = as_vectors(vectors, len(texts), None if known is None else known.shape[1])
        self._vectors = matrix if known is None else np.concatenate([known, matrix])
        self._search = CosineSearch(self._vectors)

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """The rows that are nearest to a vector, and their cosines."""
        if self._search is None or self._vectors is None:
            return []
        (scores,) = self._search.scores(unit_vector(vector, self._vectors.shape[1])[None])
        rows = top(scores, k)
        return list(zip(rows.tolist(), scores[rows].tolist(), strict=True))

    def close(self) -> None:
        """Give back the memory."""
        self._vectors = self._search = None
