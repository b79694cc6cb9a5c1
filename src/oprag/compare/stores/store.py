"""A vector store in an experiment: finds chunks, by row, from vectors."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError
from oprag.masking import describe
from oprag.positions.values import finite

__all__ = ["EmptyStore", "FoundRow", "Store"]

# PostgreSQL rejects NUL, and surrogates cannot be encoded as UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

FoundRow = tuple[int, float | None]
"""A row, which is the number of a chunk, and the score of the store; None if it has no scores."""


@dataclass(frozen=True)
class EmptyStore:
    """An empty store of a framework, with the settings to use it."""

    store: Any
    close: Callable[[], object] = lambda: None
    batch_size: int = 1_000  # maximum number of chunks added in one call
    search: Mapping[str, Any] = field(default_factory=dict)  # extra arguments of each search


class Store(ABC):
    """The chunks of an index in a store of a framework, with rows 0 to n - 1.

    Args:
        name: The name of the store in the experiment.
        empty: The empty store.
        texts: One or more chunks.
        vectors: The vectors of the chunks, of shape (number of texts, dimension); they are normalized.
    """

    def __init__(self, name: str, empty: EmptyStore, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._name = name
        self._store = empty.store
        self.close = empty.close
        self._texts = [_UNSTORABLE.sub("\ufffd", text) for text in texts]
        unit = as_vectors(vectors, len(texts))
        self._dimension = unit.shape[1]
        # UUIDs, since some stores accept no other ids; random, so that chunks of another index are detected.
        first = uuid.uuid4().int >> 64 << 64
        keys = [str(uuid.UUID(int=first + row)) for row in range(len(texts))]
        self._rows = {key: row for row, key in enumerate(keys)}
        try:
            for start in range(0, len(texts), empty.batch_size):
                part = slice(start, start + empty.batch_size)
                self._put(keys[part], self._texts[part], unit[part])
        except BaseException:
            self.close()
            raise

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """Up to k rows with the highest cosine similarity to a vector of shape (dimension,), best first."""
        (unit,) = as_vectors(np.asarray(vector)[None], 1, self._dimension)
        limit = min(k, len(self._texts))
        found: dict[int, float | None] = {}
        for key, text, score in self._search(unit, limit):
            row = self._rows.get(str(key))
            if row is None or text not in (None, self._texts[row]):
                raise ExperimentError(
                    f"the store {self._name!r} returned a text that this experiment did not add, with the id "
                    f"{describe(key)}; a store must be empty when it is opened, and return texts unchanged",
                    key,
                )
            if row in found:
                raise ExperimentError(f"the store {self._name!r} returned chunk {row} twice for one question", row)
            found[row] = finite(score)
        return list(found.items())[:limit]

    @abstractmethod
    def _put(self, keys: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add chunks to the store."""

    @abstractmethod
    def _search(self, unit: NDArray[np.float32], k: int) -> Iterable[tuple[Any, str | None, Any]]:
        """The key, text and score of each chunk found; None if the store does not return the text or score."""
