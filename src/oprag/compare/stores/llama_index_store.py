"""A LlamaIndex vector store as a store of an experiment."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores import VectorStoreQuery
from numpy.typing import NDArray

from oprag.compare.stores.store import FoundRow, checked_rows, replace_unstorable, unit_vector
from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError
from oprag.masking import describe

__all__ = ["LlamaIndexStore"]

_BATCH_SIZE = 1_000


class LlamaIndexStore:
    """A LlamaIndex vector store, which must be empty; one thread at a time searches it."""

    def __init__(self, name: str, store: Any, close: Callable[[], None]) -> None:
        self._name = name
        self._store = store
        self._close = close
        self._dimension: int | None = None
        self._texts: list[str] = []
        self._rows: dict[str, int] = {}
        self._lock = Lock()

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add chunks."""
        if not texts:
            return
        with self._lock:
            matrix = as_vectors(vectors, len(texts), self._dimension)
            self._dimension = matrix.shape[1]
            for start in range(0, len(texts), _BATCH_SIZE):
                part = [replace_unstorable(text) for text in texts[start : start + _BATCH_SIZE]]
                rows = matrix[start : start + _BATCH_SIZE]
                # UUIDs, since some stores take no other ids.
                nodes = [
                    TextNode(text=text, id_=str(uuid.UUID(int=len(self._texts) + place)), embedding=vector)
                    for place, (text, vector) in enumerate(zip(part, rows.tolist(), strict=True))
                ]
                given = self._store.add(nodes)
                # Some stores number their nodes, and return that number.
                for names in ([node.node_id for node in nodes], given or []):
                    if len(names) == len(nodes):
                        self._rows |= {str(name): len(self._texts) + place for place, name in enumerate(names)}
                self._texts += part

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """The rows that are nearest to a vector, and the store's own scores."""
        if self._dimension is None:
            return []
        unit, wanted = unit_vector(vector, self._dimension), min(k, len(self._texts))
        query = VectorStoreQuery(query_embedding=unit.tolist(), similarity_top_k=wanted)
        with self._lock:
            result = self._store.query(query)
        nodes = result.nodes
        names = result.ids if result.ids is not None else [node.node_id for node in nodes or ()]
        scores: Sequence[Any] = [None] * len(names) if result.similarities is None else result.similarities
        texts = [None] * len(names) if not nodes else [node.get_content(MetadataMode.NONE) for node in nodes]
        found = zip(names, scores, texts, strict=True)
        rows = [(self._row_of(name, text), None if score is None else float(score)) for name, score, text in found]
        return checked_rows(rows, wanted, self._name)

    def close(self) -> None:
        """Close the store."""
        self._dimension = None
        self._texts, self._rows = [], {}
        self._close()

    def _row_of(self, name: str, text: str | None) -> int:
        row = self._rows.get(str(name))
        if row is None or (text is not None and text != self._texts[row]):
            raise ExperimentError(
                f"the store {self._name!r} found a node that this experiment did not put in, with the id "
                f"{describe(name)}; it must be empty when it is opened",
                name,
            )
        return row
