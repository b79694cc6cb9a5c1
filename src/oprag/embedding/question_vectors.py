"""An embedder that caches the last questions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from oprag.embedding.cosine import as_vectors
from oprag.embedding.embedder import Embedder

__all__ = ["QuestionVectors"]

_MAX_CACHED = 64


class QuestionVectors:
    """An `Embedder` that caches the vectors of the most recent questions.

    The same question is used for search, thresholds and ranking of answers, and each embedding by a hosted model is a
    request.

    Args:
        embedder: The underlying embedder.
        dimension: Required dimension of the vectors; None if unknown.
    """

    def __init__(self, embedder: Embedder, dimension: int | None) -> None:
        self._embedder = embedder
        self._dimension = dimension
        self._known: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[QuestionVectors], tuple[Embedder, int | None]]:
        """Copies start with an empty cache, since a lock cannot be copied."""
        return QuestionVectors, (self._embedder, self._dimension)

    @property
    def name(self) -> str:
        """Identity of the embedder."""
        return self._embedder.name

    @property
    def persistent(self) -> bool:
        """Whether the name is stable across processes."""
        return getattr(self._embedder, "persistent", True)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Same as `of`; implements `oprag.Embedder`."""
        return self.of(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed documents with the underlying embedder, without caching."""
        return self._embedder.embed_documents(texts)

    def forget(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._known.clear()

    def of(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of questions, of shape (number of questions, dimension)."""
        # Read once: its settings may change, and with them its name.
        name = self._embedder.name
        with self._lock:
            vectors = {one: self._known[name, one] for one in questions if (name, one) in self._known}
        new = [question for question in dict.fromkeys(questions) if question not in vectors]
        if new:
            # Outside the lock: embedding may be slow, and other threads have other questions.
            embedded = as_vectors(self._embedder.embed_questions(new), len(new), self._dimension)
            vectors |= zip(new, embedded, strict=True)
        with self._lock:
            for question in questions[-_MAX_CACHED:]:
                self._known.pop((name, question), None)
                # A copy, since a view would keep the whole batch in memory.
                self._known[name, question] = vectors[question].copy()
            while len(self._known) > _MAX_CACHED:
                self._known.popitem(last=False)
        return np.stack([vectors[question] for question in questions])
