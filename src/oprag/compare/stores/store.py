"""A vector store in an experiment: chunks by their rows, found by their vectors."""

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

__all__ = ["EmptyStore", "FoundRow", "Store"]

# PostgreSQL refuses the character 0, and the others have no UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

FoundRow = tuple[int, float | None]
"""A row, which is the number of a chunk, and the store's own score, if it has one."""


@dataclass(frozen=True)
class EmptyStore:
    """An empty store of a framework, and how it is used."""

    store: Any
    close: Callable[[], object] = lambda: None
    batch_size: int = 1_000  # chunks in one call
    search: Mapping[str, Any] = field(default_factory=dict)  # further arguments of each search


class Store(ABC):
    """The chunks of one index in a store of a framework, in rows 0 to n - 1.

    Args:
        name: Its name in the experiment.
        empty: The store.
        texts: The chunks, at least one.
        vectors: Their vectors, of any length and of shape (number of texts, dimension).
    """

    def __init__(self, name: str, empty: EmptyStore, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._name = name
        self._store = empty.store
        self.close = empty.close
        self._texts = [_UNSTORABLE.sub("\ufffd", text) for text in texts]
        unit = as_vectors(vectors, len(texts))
        self._dimension = unit.shape[1]
        # UUIDs, since some stores take no other ids; new ones, so that chunks of another index are not taken for ours.
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
        """Up to k rows that are nearest to a vector of shape (dimension,) by cosine, best first."""
        (unit,) = as_vectors(np.asarray(vector)[None], 1, self._dimension)
        wanted = min(k, len(self._texts))
        found: dict[int, float | None] = {}
        for key, text, score in self._found(unit, wanted):
            row = self._rows.get(str(key))
            if row is None or text not in (None, self._texts[row]):
                raise ExperimentError(
                    f"the store {self._name!r} found a text that this experiment did not put in, with the id "
                    f"{describe(key)}; it must be empty when it is opened, and return texts unchanged",
                    key,
                )
            if row in found:
                raise ExperimentError(f"the store {self._name!r} found chunk {row} twice for one question", row)
            found[row] = None if score is None else float(score)
        return list(found.items())[:wanted]

    @abstractmethod
    def _put(self, keys: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Store chunks."""

    @abstractmethod
    def _found(self, unit: NDArray[np.float32], k: int) -> Iterable[tuple[Any, str | None, Any]]:
        """The key, the text and the score of each chunk that is found; None for what the store does not return."""
