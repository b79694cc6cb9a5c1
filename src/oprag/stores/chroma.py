"""Chroma: LangChain's `Chroma` and LlamaIndex's `ChromaVectorStore`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprag.stores.adapter import StoreAdapter, StoredVector

__all__ = ["LangChainChroma", "LlamaIndexChroma"]


class LangChainChroma(StoreAdapter):
    """LangChain's `Chroma`."""

    # The scores of this method are distances, in spite of its name: those of the search by words.
    by_vector = "similarity_search_by_vector_with_relevance_scores"

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by id."""
        return _vectors(self.store.get, keys)


class LlamaIndexChroma(StoreAdapter):
    """LlamaIndex's `ChromaVectorStore`, whose client is a collection."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of nodes by id."""
        return _vectors(self.store.client.get, keys)


def _vectors(get: Callable[..., Any], ids: Sequence[str]) -> Mapping[str, StoredVector]:
    found = get(ids=list(ids), include=["embeddings", "documents"])
    rows = zip(found["ids"], found["embeddings"], found["documents"], strict=True)
    return {key: StoredVector(vector, text) for key, vector, text in rows}
