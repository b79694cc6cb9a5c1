"""Chroma: LangChain's `Chroma` and LlamaIndex's `ChromaVectorStore`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.positions.insertion import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector, chunks_with

__all__ = ["LangChainChroma", "LlamaIndexChroma"]

# The sources in a condition, well below the values that SQLite takes in a statement.
_SOURCES = 5_000


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
        conditions: list[dict[str, Any]] = []
        # SQLite takes some thousand values; more sources are told apart here.
        if field and len(sources) <= _SOURCES:
            conditions.append({field: {"$in": list(sources)}})
        if self.search.get("filter"):
            conditions.append(self.search["filter"])
        found = self.store.get(
            ids=self.search.get("ids"),
            where={"$and": conditions} if len(conditions) > 1 else next(iter(conditions), None),
            where_document=self.search.get("where_document"),
            include=[],
        )
        return chunks_with(self._rows(found["ids"]), field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Update the metadata, into which Chroma merges the new keys; a batch is written whole or not at all."""
        for batch in self._batches(list(added)):
            self.refuse_unknown(batch, set(self.store.get(ids=batch, include=[])["ids"]))
        for batch in self._batches(list(added)):
            # The method of the store itself embeds the texts.
            self.store._collection.update(ids=batch, metadatas=[dict(added[key]) for key in batch])  # noqa: SLF001

    def _rows(self, ids: Sequence[str]) -> Iterator[StoredChunk]:
        for batch in self._batches(ids):
            found = self.store.get(ids=batch, include=["documents", "metadatas"])
            for key, text, metadata in zip(found["ids"], found["documents"], found["metadatas"], strict=True):
                yield StoredChunk(key, text or "", metadata or {})

    def _batches(self, ids: Sequence[str]) -> Iterator[list[str]]:
        """Ids as many as the database takes at once."""
        size = self.store._client.get_max_batch_size()  # noqa: SLF001
        return (list(ids[start : start + size]) for start in range(0, len(ids), size))


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
