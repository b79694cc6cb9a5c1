"""Vectors of questions and documents, cached across runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oprag.compare.db.cache import WorkCache
from oprag.compare.db.records import VectorRecord
from oprag.embedding.cache import Kind, text_keys
from oprag.embedding.cosine import as_vectors
from oprag.embedding.embedder import Embedder

__all__ = ["VectorSource"]

_BATCH = 256


class VectorSource:
    """A cached embedder: missing vectors are embedded and stored in batches."""

    def __init__(self, embedder: Embedder, cache: WorkCache) -> None:
        self.embedder = embedder
        self.name = embedder.name
        self._cache = cache
        self._questions: dict[str, NDArray[np.float32]] = {}

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension)."""
        return self._vectors(texts, "document")

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._questions]
        if new:
            self._questions |= zip(new, self._vectors(new, "question"), strict=True)
        return np.stack([self._questions[text] for text in texts]) if texts else np.zeros((0, 0), np.float32)

    def forget_questions(self) -> None:
        """Drop the in-memory vectors of questions."""
        self._questions.clear()

    def _vectors(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        distinct = list(dict.fromkeys(texts))
        hashes = text_keys(distinct, kind)
        stored = self._cache.get(VectorRecord, [(self.name, key) for key in hashes])
        known = {text: one and one.vector for text, one in zip(distinct, stored, strict=True)}
        missing = [(text, key) for text, key in zip(distinct, hashes, strict=True) if known[text] is None]
        embed = self.embedder.embed_questions if kind == "question" else self.embedder.embed_documents
        dimension = next((len(vector) for vector in known.values() if vector is not None), None)
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            words = [text for text, _ in batch]
            rows = as_vectors(embed(words), len(batch), dimension)
            dimension = rows.shape[1]
            self._cache.put([VectorRecord(self.name, key, row) for (_, key), row in zip(batch, rows, strict=True)])
            known |= zip(words, rows, strict=True)
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([vector for text in texts if (vector := known[text]) is not None])
