"""Chroma: LangChain's `Chroma` and LlamaIndex's `ChromaVectorStore`."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from oprag.positions.insertion import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector

__all__ = ["LangChainChroma", "LlamaIndexChroma"]


class LangChainChroma(StoreAdapter):
    """LangChain's `Chroma`."""

    # The scores of this method are distances, in spite of its name: those of the search by words.
    by_vector = "similarity_search_by_vector_with_relevance_scores"
    in_insertion_order = True

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by id."""
        return _vectors(self.store.get, keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """The ids in the sequence of insertion, in which Chroma lists them."""
        ids: list[str] = self.store.get(ids=list(keys), include=[])["ids"]
        return ids

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """The chunks in the sequence of insertion."""
        conditions: list[dict[str, Any]] = [{field: {"$in": list(sources)}}] if field else []
        if self.search.get("filter"):
            conditions.append(self.search["filter"])
        found = self.store.get(
            where={"$and": conditions} if len(conditions) > 1 else next(iter(conditions), None),
            where_document=self.search.get("where_document"),
            include=["documents", "metadatas"],
        )
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        return (StoredChunk(key, text or "", metadata or {}) for key, text, metadata in rows)


class LlamaIndexChroma(StoreAdapter):
    """LlamaIndex's `ChromaVectorStore`, whose client is a collection."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of nodes by id."""
        return _vectors(self.store.client.get, keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """The ids in the sequence of insertion, in which Chroma lists them."""
        ids: list[str] = self.store.client.get(ids=list(keys), include=[])["ids"]
        return ids


def _vectors(get: Callable[..., Any], ids: Sequence[str]) -> Mapping[str, StoredVector]:
    found = get(ids=list(ids), include=["embeddings", "documents"])
    rows = zip(found["ids"], found["embeddings"], found["documents"], strict=True)
    return {key: StoredVector(vector, text) for key, vector, text in rows}
