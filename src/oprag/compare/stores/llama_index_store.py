"""A LlamaIndex vector store as a store of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores import VectorStoreQuery
from numpy.typing import NDArray

from oprag.compare.stores.store import Store

__all__ = ["LlamaIndexStore"]


class LlamaIndexStore(Store):
    """A LlamaIndex vector store."""

    def _put(self, keys: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        nodes = [
            TextNode(text=text, id_=key, embedding=vector)
            for key, text, vector in zip(keys, texts, vectors.tolist(), strict=True)
        ]
        names = self._store.add(nodes)
        # Some stores assign their own ids, and return them.
        if names and len(names) == len(nodes):
            self._rows |= {str(name): self._rows[key] for name, key in zip(names, keys, strict=True)}

    def _search(self, unit: NDArray[np.float32], k: int) -> Iterator[tuple[Any, str | None, Any]]:
        result = self._store.query(VectorStoreQuery(query_embedding=unit.tolist(), similarity_top_k=k))
        nodes = result.nodes
        names = result.ids if result.ids is not None else [node.node_id for node in nodes or ()]
        scores: Sequence[Any] = [None] * len(names) if result.similarities is None else result.similarities
        texts = [None] * len(names) if not nodes else [node.get_content(MetadataMode.NONE) for node in nodes]
        yield from zip(names, texts, scores, strict=True)
