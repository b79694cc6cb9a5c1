"""Qdrant: the `QdrantVectorStore` of LangChain and that of LlamaIndex."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from oprag.stores.adapter import StoreAdapter, StoredVector

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["LangChainQdrant", "LlamaIndexQdrant"]


class LangChainQdrant(StoreAdapter):
    """LangChain's `QdrantVectorStore`."""

    by_vector = "similarity_search_with_score_by_vector"

    @property
    def dense(self) -> bool:
        """Whether this search compares vectors only, as its search by a vector does."""
        mode = self.store.retrieval_mode
        return str(getattr(mode, "value", mode)) == "dense"

    def key(self, chunk: Chunk) -> str | None:
        """The id of a document, which this store keeps in its metadata."""
        key = chunk.metadata.get("_id", chunk.id)
        return None if key is None else str(key)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by id."""
        named, text = self.store.vector_name, self.store.content_payload_key
        points = self.store.client.retrieve(
            collection_name=self.store.collection_name,
            # Ids are whole numbers or UUIDs, and keys are strings.
            ids=[int(key) if key.isdecimal() else key for key in keys],
            with_payload=[text],
            with_vectors=[named] if named else True,
            # Ids are distinct inside of a shard key alone.
            **{
                name: self.search[name]
                for name in ("consistency", "shard_key_selector", "timeout")
                if self.search.get(name)
            },
        )
        return {
            str(point.id): StoredVector(_vector(point, named), (point.payload or {}).get(text, "")) for point in points
        }


class LlamaIndexQdrant(StoreAdapter):
    """LlamaIndex's `QdrantVectorStore`."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of nodes by id."""
        return self._stored(self.store.client.retrieve(**self._request(keys)), keys)

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`, with the async client if there is one."""
        client = getattr(self.store, "_aclient", None)
        if client is None:
            return await to_thread(self.vectors, keys)
        return self._stored(await client.retrieve(**self._request(keys)), keys)

    def _request(self, ids: Sequence[str]) -> dict[str, Any]:
        named, shard = self.store.dense_vector_name, self.search.get("shard_identifier")
        request = {
            "collection_name": self.store.collection_name,
            "ids": list(ids),
            "with_payload": ["_node_content", self.store.text_key],
            "with_vectors": [named] if named else True,
        }
        if shard is not None:
            # Ids are distinct inside of a shard alone.
            request["shard_key_selector"] = self.store._generate_shard_key_selector(shard)  # noqa: SLF001
        return request

    def _stored(self, points: Iterable[Any], ids: Sequence[str]) -> dict[str, StoredVector]:
        nodes = {_point_id(key): key for key in ids}
        return {
            nodes.get(str(point.id), str(point.id)): StoredVector(
                _vector(point, self.store.dense_vector_name), _node_text(point.payload or {}, self.store.text_key)
            )
            for point in points
        }


def _vector(point: Any, name: str | None) -> Any:
    return point.vector.get(name or "") if isinstance(point.vector, dict) else point.vector


def _point_id(key: str) -> str:
    """The id of a node in Qdrant, which writes a UUID with dashes whatever form it was given in."""
    try:
        return str(UUID(key))
    except ValueError:
        return key


def _node_text(payload: Mapping[str, Any], key: str) -> str | None:
    if "_node_content" in payload:
        text: str | None = json.loads(payload["_node_content"]).get("text")
        return text or payload.get(key)
    return payload.get(key)
