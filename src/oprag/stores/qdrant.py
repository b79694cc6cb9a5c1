"""Qdrant: the `QdrantVectorStore` of LangChain and that of LlamaIndex."""

from __future__ import annotations

import json
import re
from asyncio import to_thread
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from oprag.positions.sources import numbers_named
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with, parts
from oprag.stores.llama_index_nodes import NODE_FIELD, content_with, docstore_rows, listed_nodes, put_rows

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["LangChainQdrant", "LlamaIndexQdrant"]

_BATCH = 1_000  # points in a request


class LangChainQdrant(StoreAdapter):
    """LangChain's `QdrantVectorStore`."""

    by_vector = "similarity_search_with_score_by_vector"
    filters = ("filter", "shard_key_selector")
    settings = ("consistency", "hybrid_fusion", "offset", "search_params", "timeout")

    @property
    def dense(self) -> bool:
        """Whether the search uses vectors only, like the search by vector."""
        mode = self.store.retrieval_mode
        return str(getattr(mode, "value", mode)) == "dense"

    def key(self, chunk: Chunk) -> str | None:
        """Return the id of a document, which this store returns in the metadata."""
        key = chunk.metadata.get("_id", chunk.id)
        return None if key is None else str(key)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id."""
        named, text = self.store.vector_name, self.store.content_payload_key
        points = self.store.client.retrieve(
            collection_name=self.store.collection_name,
            ids=_as_ids(keys),
            with_payload=[text],
            with_vectors=[named] if named else True,
            **self._given("consistency", "shard_key_selector", "timeout"),
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
        conditions: list[Any] = [] if given is None else [given]
        if field:
            key = f"{_path(self.store.metadata_payload_key)}.{_path(field)}"
            conditions.append(_named(key, sources))
        return chunks_with(self._rows(models.Filter(must=conditions)), field, sources)

    @property
    def total(self) -> int | None:
        """Number of chunks that match the filter."""
        given = self._given("shard_key_selector", "timeout")
        count = self.store.client.count(self.store.collection_name, count_filter=self.search.get("filter"), **given)
        return int(count.count)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Set keys of the payload; atomic for each point."""
        from qdrant_client import models

        keys, client, collection = list(added), self.store.client, self.store.collection_name
        for batch in parts(keys, _BATCH):
            found = client.retrieve(
                collection_name=collection,
                ids=_as_ids(batch),
                with_payload=False,
                **self._given("shard_key_selector", "timeout"),
            )
            self.refuse_unknown(batch, {str(point.id) for point in found})
        shard, path = self.search.get("shard_key_selector"), _path(self.store.metadata_payload_key)
        changes = (
            models.SetPayload(payload=dict(more), points=_as_ids([key]), key=path, shard_key=shard)
            for key, more in added.items()
        )
        operations = [models.SetPayloadOperation(set_payload=change) for change in changes]
        for some in parts(operations, _BATCH):
            client.batch_update_points(collection, some, **self._given("timeout"))

    def _rows(self, conditions: Any) -> Iterator[StoredChunk]:
        text, about = self.store.content_payload_key, self.store.metadata_payload_key
        following = None
        while True:
            points, following = self.store.client.scroll(
                collection_name=self.store.collection_name,
                scroll_filter=conditions,
                limit=_BATCH,
                offset=following,
                with_payload=[_path(text), _path(about)],
                **self._given("consistency", "shard_key_selector", "timeout"),
            )
            for point in points:
                payload = point.payload or {}
                yield StoredChunk(str(point.id), payload.get(text) or "", payload.get(about) or {})
            if following is None:
                return

    def _given(self, *names: str) -> dict[str, Any]:
        """Return search keywords to pass to other requests; ids are unique only within a shard key."""
        return {name: self.search[name] for name in names if self.search.get(name)}


class LlamaIndexQdrant(StoreAdapter):
    """LlamaIndex's `QdrantVectorStore`."""

    filters = ("filters", "node_ids", "qdrant_filters", "shard_identifier")
    settings = ("search_params",)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of nodes by id."""
        return self._stored(self.store.client.retrieve(**self._request(keys)), keys)

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Async version of `vectors`, with the async client if there is one."""
        client = getattr(self.store, "_aclient", None)
        if client is None:
            return await to_thread(self.vectors, keys)
        return self._stored(await client.retrieve(**self._request(keys)), keys)

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the nodes by id; None without a sync client."""
        return None if self.store.client is None else self._listed(field, sources)

    def _listed(self, field: str, sources: Collection[str]) -> Iterator[StoredChunk]:
        from llama_index.core.vector_stores.types import VectorStoreQuery
        from qdrant_client import models

        given = self.search.get("qdrant_filters")
        if given is None:
            query = VectorStoreQuery(node_ids=self.search.get("node_ids"), filters=self.search.get("filters"))
            given = self.store._build_query_filter(query)  # noqa: SLF001
        conditions = [] if given is None else [given]
        if field and '"' not in field:
            # A quoted key may contain a dot.
            conditions.append(_named(f'"{field}"', sources))
        offset: Any = None
        while True:
            points, offset = self.store.client.scroll(
                self.store.collection_name,
                scroll_filter=models.Filter(must=conditions) if conditions else None,
                limit=_POINTS_A_REQUEST,
                offset=offset,
                shard_key_selector=self._shard,
            )
            yield from listed_nodes(self.store.parse_to_query_result(points).nodes, field, sources)
            if offset is None:
                return

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes; atomic for each node, not for the whole call."""
        from qdrant_client import models

        client, name, nodes = self.store.client, self.store.collection_name, {_point_id(key): key for key in added}
        flat: dict[str, Mapping[str, Any]] = {}
        for part in parts([*added], _POINTS_A_REQUEST):
            points = client.retrieve(name, part, [NODE_FIELD], shard_key_selector=self._shard)
            flat |= {nodes[str(point.id)]: point.payload or {} for point in points}
        self.refuse_unknown(added, flat)
        rows = docstore_rows(self.docstore, added)
        changes = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(
                    payload=content_with(flat[key], more, key), points=[key], shard_key=self._shard
                )
            )
            for key, more in added.items()
        ]
        # The docstore first: nodes are listed from the store, so a rerun finds nodes that an interruption left undone.
        put_rows(self.docstore, rows)
        for operations in parts(changes, _POINTS_A_REQUEST):
            client.batch_update_points(name, operations, wait=True)

    @property
    def _shard(self) -> Any:
        """The shard key selector of the search; None for all shards."""
        shard = self.search.get("shard_identifier")
        return None if shard is None else self.store._generate_shard_key_selector(shard)  # noqa: SLF001

    def _request(self, ids: Sequence[str]) -> dict[str, Any]:
        named = self.store.dense_vector_name
        return {
            "collection_name": self.store.collection_name,
            "ids": list(ids),
            "with_payload": [NODE_FIELD, self.store.text_key],
            "with_vectors": [named] if named else True,
            # Ids are unique only within a shard key.
            "shard_key_selector": self._shard,
        }

    def _stored(self, points: Iterable[Any], ids: Sequence[str]) -> dict[str, StoredVector]:
        nodes = {_point_id(key): key for key in ids}
        return {
            nodes.get(str(point.id), str(point.id)): StoredVector(
                _vector(point, self.store.dense_vector_name), _node_text(point.payload or {}, self.store.text_key)
            )
            for point in points
        }


def _as_ids(keys: Iterable[str]) -> list[int | str]:
    """Convert keys (strings) to point ids, which are integers or UUIDs."""
    return [int(key) if key.isdecimal() else key for key in keys]


def _named(key: str, sources: Collection[str]) -> Any:
    """Return the condition that a payload key contains one of these sources, as text or number."""
    from qdrant_client import models

    numbers = [models.Range(gte=number, lte=number) for number in numbers_named(sources)]
    named = models.FieldCondition(key=key, match=models.MatchAny(any=[*sources]))
    return models.Filter(should=[named, *(models.FieldCondition(key=key, range=number) for number in numbers)])


def _path(key: str) -> str:
    """Quote a payload key for a path if needed: a dot would mean a nested key."""
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


_POINTS_A_REQUEST = 500


def _vector(point: Any, name: str | None) -> Any:
    return point.vector.get(name or "") if isinstance(point.vector, dict) else point.vector


def _point_id(key: str) -> str:
    """Return the id of a node in Qdrant, which normalizes UUIDs to the form with dashes."""
    try:
        return str(UUID(key))
    except ValueError:
        return key


def _node_text(payload: Mapping[str, Any], key: str) -> str | None:
    if NODE_FIELD in payload:
        text: str | None = json.loads(payload[NODE_FIELD]).get("text")
        return text or payload.get(key)
    return payload.get(key)
