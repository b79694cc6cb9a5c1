"""Qdrant: the `QdrantVectorStore` of LangChain and that of LlamaIndex."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.chunk import Chunk
from oprag.positions.source_names import numbers_named
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with, parts, refuse_unknown
from oprag.stores.llama_index_nodes import NODE_FIELD, listed_nodes, written_to_docstore

__all__ = ["LangChainQdrant", "LlamaIndexQdrant"]

_BATCH = 1_000  # points in a request


class LangChainQdrant(StoreAdapter):
    """LangChain's `QdrantVectorStore`."""

    by_vector = "similarity_search_with_score_by_vector"
    settings = ("consistency", "hybrid_fusion", "offset", "search_params", "timeout")

    @property
    def dense(self) -> bool:
        """Whether the search uses vectors only, like the search by vector."""
        return bool(self.store.retrieval_mode == "dense")

    def key(self, chunk: Chunk) -> str | None:
        """Return the id of a document, which this store returns in the metadata."""
        key = chunk.metadata.get("_id", chunk.id)
        return None if key is None else str(key)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id."""
        named, text = self.store.vector_name, self.store.content_payload_key
        points = self.store.client.retrieve(
            self.store.collection_name, _as_ids(keys), with_vectors=[named] if named else True
        )
        return {
            str(point.id): StoredVector(_vector(point, named), (point.payload or {}).get(text, "")) for point in points
        }

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the chunks by id; None for a filter of another type than Qdrant's."""
        from qdrant_client import models

        given = self.search.get("filter")
        if not isinstance(given, models.Filter | None):
            return None
        text, about = self.store.content_payload_key, self.store.metadata_payload_key
        pages = _pages(self.store, given, field and f'{about}."{field}"', sources)
        points = ((str(point.id), point.payload or {}) for page in pages for point in page)
        rows = (StoredChunk(key, payload.get(text) or "", payload.get(about) or {}) for key, payload in points)
        return chunks_with(rows, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Set keys of the payload; atomic for each point."""
        for batch in parts([*added], _BATCH):
            found = self.store.client.retrieve(self.store.collection_name, _as_ids(batch), with_payload=False)
            refuse_unknown(self, batch, {str(point.id) for point in found})
        _set(self.store, added, self.store.metadata_payload_key)


class LlamaIndexQdrant(StoreAdapter):
    """LlamaIndex's `QdrantVectorStore`."""

    filters = ("filters", "node_ids", "qdrant_filters", "doc_ids")
    settings = ("search_params",)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of nodes by id."""
        return self._stored(self.store.client.retrieve(**self._request(keys)))

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Async version of `vectors`, with the async client if there is one."""
        client = getattr(self.store, "_aclient", None)
        if client is None:
            return await to_thread(self.vectors, keys)
        return self._stored(await client.retrieve(**self._request(keys)))

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the nodes by id; None without a sync client."""
        from llama_index.core.vector_stores.types import VectorStoreQuery

        if self.store.client is None:
            return None
        given = self.search.get("qdrant_filters")
        if given is None:
            query = VectorStoreQuery(node_ids=self.search.get("node_ids"), filters=self.search.get("filters"))
            given = self.store._build_query_filter(query)  # noqa: SLF001
        points = _pages(self.store, given, field and f'"{field}"', sources)
        pages = map(self.store.parse_to_query_result, points)
        return listed_nodes((node for page in pages for node in page.nodes), field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes; atomic for each node, not for the whole call."""
        stored: dict[str, Mapping[str, Any]] = {}
        for batch in parts([*added], _BATCH):
            points = self.store.client.retrieve(self.store.collection_name, batch, [NODE_FIELD])
            stored |= {_node_of(point).get("id_", str(point.id)): point.payload or {} for point in points}
        _set(self.store, written_to_docstore(self, stored, added))

    def _request(self, ids: Sequence[str]) -> dict[str, Any]:
        named = self.store.dense_vector_name
        return {
            "collection_name": self.store.collection_name,
            "ids": list(ids),
            "with_payload": [NODE_FIELD, self.store.text_key],
            "with_vectors": [named] if named else True,
        }

    def _stored(self, points: Iterable[Any]) -> dict[str, StoredVector]:
        vectors: dict[str, StoredVector] = {}
        for point in points:
            node = _node_of(point)
            text = node.get("text") or (point.payload or {}).get(self.store.text_key)
            # Qdrant returns a UUID in another form than the id of the node may have.
            vectors[node.get("id_", str(point.id))] = StoredVector(_vector(point, self.store.dense_vector_name), text)
        return vectors


def _pages(store: Any, given: Any, key: str, sources: Collection[str]) -> Iterator[list[Any]]:
    """Read the points that match the search's filter and have one of these sources under a (quoted) key, if any."""
    from qdrant_client import models

    matches = [{"match": models.MatchAny(any=[*sources])}]
    matches += [{"range": models.Range(gte=number, lte=number)} for number in numbers_named(sources)]
    named = models.Filter(should=[models.FieldCondition(key=key, **one) for one in matches]) if key else None
    condition = models.Filter(must=[one for one in (given, named) if one is not None])
    following: Any = None
    while True:
        points, following = store.client.scroll(store.collection_name, condition, limit=_BATCH, offset=following)
        yield points
        if following is None:
            return


def _set(store: Any, payloads: Mapping[str, Mapping[str, Any]], path: str | None = None) -> None:
    """Set keys of the payloads of points, or of the object at a path in them."""
    from qdrant_client import models

    changes = (models.SetPayload(payload=dict(more), points=_as_ids([key]), key=path) for key, more in payloads.items())
    for batch in parts([models.SetPayloadOperation(set_payload=change) for change in changes], _BATCH):
        store.client.batch_update_points(store.collection_name, batch)


def _as_ids(keys: Iterable[str]) -> list[int | str]:
    """Convert keys (strings) to point ids, which are integers or UUIDs."""
    return [int(key) if key.isdecimal() else key for key in keys]


def _vector(point: Any, name: str | None) -> Any:
    return point.vector.get(name or "") if isinstance(point.vector, dict) else point.vector


def _node_of(point: Any) -> dict[str, Any]:
    """Return the fields of the node of a point; empty for a point of another tool."""
    fields: dict[str, Any] = json.loads((point.payload or {}).get(NODE_FIELD) or "{}")
    return fields
