"""An embedder that remembers the last questions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from oprag.embedding.cosine import as_vectors
from oprag.embedding.embedder import Embedder

__all__ = ["QuestionVectors"]

_REMEMBERED = 64


class QuestionVectors:
    """Embeds questions; one that was asked lately is not embedded again.

    A question is searched for, held against thresholds and ranked against answers, and a hosted model takes a request
    for each time that it is embedded.

    Args:
        embedder: Embeds the questions.
        dimension: The dimension that their vectors must have; None where it is not known.
    """

    def __init__(self, embedder: Embedder, dimension: int | None) -> None:
        self._embedder = embedder
        self._dimension = dimension
        self._known: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[QuestionVectors], tuple[Embedder, int | None]]:
        """A copy, here or in another process, begins without what is remembered: a lock cannot be copied."""
        return QuestionVectors, (self._embedder, self._dimension)

    @property
    def name(self) -> str:
        """The identity of the embedder."""
        return self._embedder.name

    @property
    def lasting(self) -> bool:
        """Whether the name means the same in another process."""
        return getattr(self._embedder, "lasting", True)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `of`: this is an `oprag.Embedder` itself."""
        return self.of(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """What the embedder makes of documents, of which none is remembered."""
        return self._embedder.embed_documents(texts)

    def forget(self) -> None:
        """Forget what is remembered, so that the next question is embedded as if it were the first."""
        with self._lock:
            self._known.clear()

    def of(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, of shape (number of questions, dimension)."""
        # Its settings, and with them its name, may have been changed.
        name = self._embedder.name
        with self._lock:
            vectors = {one: self._known[name, one] for one in questions if (name, one) in self._known}
        new = [question for question in dict.fromkeys(questions) if question not in vectors]
        if new:
            # Outside of the lock: it may take a second, and other threads ask other questions.
            embedded = as_vectors(self._embedder.embed_questions(new), len(new), self._dimension)
            vectors |= zip(new, embedded, strict=True)
        with self._lock:
            for question in questions[-_REMEMBERED:]:
                self._known.pop((name, question), None)
                # A copy of its row: a view would keep all rows of the batch.
                self._known[name, question] = vectors[question].copy()
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return np.stack([vectors[question] for question in questions])
