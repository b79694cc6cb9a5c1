"""Chroma: LangChain's `Chroma` and LlamaIndex's `ChromaVectorStore`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.positions.source_names import numbers_named
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with, parts, refuse_unknown
from oprag.stores.llama_index_nodes import ByKey, listed_nodes, written_to_docstore

__all__ = ["LangChainChroma", "LlamaIndexChroma"]

_BATCH = 5_000  # chunks in a request, within the limit of SQLite for a statement


class _InCollection(StoreAdapter):
    """What both stores share: a collection of Chroma, which lists ids in insertion order."""

    in_insertion_order = True

    @property
    def _collection(self) -> Any:
        return self.store._collection  # noqa: SLF001 - no public attribute

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read vectors by id."""
        found = self._collection.get(ids=list(keys), include=["embeddings", "documents"])
        rows = zip(found["ids"], found["embeddings"], found["documents"], strict=True)
        return {key: StoredVector(vector, text) for key, vector, text in rows}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by insertion order."""
        found: list[str] = self._collection.get(ids=list(keys), include=[])["ids"]
        return found

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge the new keys into the metadata; atomic for each chunk, not for the whole call."""
        stored: dict[str, Mapping[str, Any]] = {}
        for keys in parts([*added], _BATCH):
            found = self._collection.get(ids=keys, include=["metadatas"])
            stored.update(zip(found["ids"], found["metadatas"], strict=True))
        changes = self._changes(stored, added)
        for keys in parts([*changes], _BATCH):
            # An update changes only the metadata that it names. The stores' own methods would embed the texts again.
            self._collection.update(ids=keys, metadatas=[changes[key] for key in keys])

    def _changes(self, stored: ByKey, added: ByKey) -> dict[str, dict[str, Any]]:
        """Return the metadata to update, given those that are stored."""
        refuse_unknown(self, added, stored)
        return {key: dict(more) for key, more in added.items()}


class LangChainChroma(_InCollection):
    """LangChain's `Chroma`."""

    # Despite its name, this method returns distances, the same scores as the store's search.
    by_vector = "similarity_search_by_vector_with_relevance_scores"
    filters = ("filter", "ids", "where_document")

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks in insertion order."""
        return chunks_with(self._rows(field, sources), field, sources)

    def _rows(self, field: str, sources: Collection[str]) -> Iterator[StoredChunk]:
        where = _where(field, sources, self.search.get("filter"))
        document, ids = self.search.get("where_document"), self.search.get("ids")
        found = self._collection.get(ids, where, where_document=document, include=[])
        for batch in parts(found["ids"], _BATCH):
            found = self._collection.get(ids=batch, include=["documents", "metadatas"])
            for key, text, metadata in zip(found["ids"], found["documents"], found["metadatas"], strict=True):
                yield StoredChunk(key, text or "", metadata or {})


class LlamaIndexChroma(_InCollection):
    """LlamaIndex's `ChromaVectorStore`, whose client is a collection."""

    filters = ("filters", "where", "where_document", "doc_ids")
    settings = ("include", "node_ids")

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterator[StoredChunk]:
        """List the nodes in insertion order."""
        from llama_index.vector_stores.chroma.base import _to_chroma_filter

        filters = self.search.get("filters")
        given = self.search.get("where") if filters is None else _to_chroma_filter(filters)
        where = _where(field, sources, given)
        found = self.store._get(None, where, where_document=self.search.get("where_document"))  # noqa: SLF001
        yield from listed_nodes(found.nodes, field, sources)

    def _changes(self, stored: ByKey, added: ByKey) -> dict[str, dict[str, Any]]:
        return written_to_docstore(self, stored, added)


def _where(field: str, sources: Collection[str], given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the condition for chunks of these sources that match the search's filter; None for all chunks."""
    named = None
    if field:
        numbers = numbers_named(sources)
        whole = [number for number in numbers if isinstance(number, int)]
        # Chroma compares only values of the same type.
        named = _joined("$or", [{field: {"$in": some}} for some in ([*sources], whole, [*map(float, numbers)]) if some])
    return _joined("$and", [condition for condition in (named, given) if condition])


def _joined(operator: str, conditions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    # Chroma rejects "$and" and "$or" with a single condition.
    return {operator: conditions} if len(conditions) > 1 else next(iter(conditions), None)
