"""Chroma: LangChain's `Chroma` and LlamaIndex's `ChromaVectorStore`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.positions.sources import numbers_named
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with, parts
from oprag.stores.llama_index_nodes import content_with, docstore_rows, listed_nodes, put_rows

__all__ = ["LangChainChroma", "LlamaIndexChroma"]

# Maximum number of sources in a condition, well below SQLite's limit for a statement; more are filtered in Python.
_MAX_SOURCES = 5_000


class LangChainChroma(StoreAdapter):
    """LangChain's `Chroma`."""

    # Despite its name, this method returns distances, the same scores as the store's search.
    by_vector = "similarity_search_by_vector_with_relevance_scores"
    in_insertion_order = True
    filters = ("filter", "ids", "where_document")

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id."""
        return _vectors(self.store.get, keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by insertion order."""
        return _in_sequence(self.store.get, keys)

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks in insertion order."""
        if field and not sources:
            return ()
        found = self.store.get(
            ids=self.search.get("ids"),
            where=_where(field, sources, self.search.get("filter")),
            where_document=self.search.get("where_document"),
            include=[],
        )
        return chunks_with(self._rows(found["ids"]), field, sources)

    @property
    def total(self) -> int | None:
        """Number of chunks; None if the search has a filter."""
        return None if self.restrictions else int(self.store._collection.count())  # noqa: SLF001

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge the new keys into the metadata; each batch is atomic."""
        for batch in parts(list(added), self._batch_size):
            self.refuse_unknown(batch, set(self.store.get(ids=batch, include=[])["ids"]))
        for batch in parts(list(added), self._batch_size):
            # The store's own update method would embed the texts again.
            self.store._collection.update(ids=batch, metadatas=[dict(added[key]) for key in batch])  # noqa: SLF001

    def _rows(self, ids: Sequence[str]) -> Iterator[StoredChunk]:
        for batch in parts(ids, self._batch_size):
            found = self.store.get(ids=batch, include=["documents", "metadatas"])
            for key, text, metadata in zip(found["ids"], found["documents"], found["metadatas"], strict=True):
                yield StoredChunk(key, text or "", metadata or {})

    @property
    def _batch_size(self) -> int:
        """Maximum number of ids in a request to the database."""
        size: int = self.store._client.get_max_batch_size()  # noqa: SLF001
        return size


class LlamaIndexChroma(StoreAdapter):
    """LlamaIndex's `ChromaVectorStore`, whose client is a collection."""

    in_insertion_order = True
    filters = ("filters", "where", "where_document")
    settings = ("include", "node_ids")

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of nodes by id."""
        return _vectors(self.store.client.get, keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by insertion order."""
        return _in_sequence(self.store.client.get, keys)

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterator[StoredChunk]:
        """List the nodes in insertion order."""
        from llama_index.vector_stores.chroma.base import _to_chroma_filter

        filters = self.search.get("filters")
        given = self.search.get("where") if filters is None else _to_chroma_filter(filters)
        where = _where(field, sources, given)
        found = self.store._get(None, where, where_document=self.search.get("where_document"))  # noqa: SLF001
        yield from listed_nodes(found.nodes, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes; atomic for each node, not for the whole call."""
        collection = self.store.client
        flat: dict[str, Mapping[str, Any]] = {}
        for part in parts([*added], self._batch_size):
            found = collection.get(ids=part, include=["metadatas"])
            flat.update(zip(found["ids"], found["metadatas"], strict=True))
        self.refuse_unknown(added, flat)
        rows = docstore_rows(self.docstore, added)
        changes = [(key, content_with(flat[key], more, key)) for key, more in added.items()]
        # The docstore first: nodes are listed from the store, so a rerun finds nodes that an interruption left undone.
        put_rows(self.docstore, rows)
        for some in parts(changes, self._batch_size):
            # An update does not change metadata that it does not name.
            collection.update(ids=[key for key, _ in some], metadatas=[more for _, more in some])

    @property
    def _batch_size(self) -> int:
        """Maximum number of nodes in a request to the database."""
        most: int = self.store.client._client.get_max_batch_size()  # noqa: SLF001
        return min(_NODES_A_REQUEST, most)


_NODES_A_REQUEST = 1_000


def _where(field: str, sources: Collection[str], given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the condition for chunks of these sources that match the search's filter; None for all chunks."""
    named = None
    if field and len(sources) <= _MAX_SOURCES:
        numbers = numbers_named(sources)
        whole = [number for number in numbers if isinstance(number, int)]
        # Chroma compares only values of the same type.
        named = _joined("$or", [{field: {"$in": some}} for some in ([*sources], whole, [*map(float, numbers)]) if some])
    return _joined("$and", [condition for condition in (named, given) if condition])


def _joined(operator: str, conditions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    # Chroma rejects "$and" and "$or" with a single condition.
    return {operator: conditions} if len(conditions) > 1 else next(iter(conditions), None)


def _in_sequence(get: Callable[..., Any], ids: Collection[str]) -> Sequence[str]:
    """Sort ids by insertion order, the order in which Chroma lists them."""
    found: list[str] = get(ids=list(ids), include=[])["ids"]
    return found


def _vectors(get: Callable[..., Any], ids: Sequence[str]) -> Mapping[str, StoredVector]:
    found = get(ids=list(ids), include=["embeddings", "documents"])
    rows = zip(found["ids"], found["embeddings"], found["documents"], strict=True)
    return {key: StoredVector(vector, text) for key, vector, text in rows}
