"""Qdrant."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from oprag.embedding.vectors import Record
from oprag.llama_index.stores.adapter import Searched, StoreAdapter

__all__ = ["ADAPTER"]


def _read(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    store = searched.vector_store
    return _records(store, store.client.retrieve(**_request(searched, ids)), ids)


async def _aread(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    store = searched.vector_store
    client = getattr(store, "_aclient", None)
    if client is None:
        return await asyncio.to_thread(_read, searched, ids)
    return _records(store, await client.retrieve(**_request(searched, ids)), ids)


def _request(searched: Searched, ids: Sequence[str]) -> dict[str, Any]:
    store, shard = searched.vector_store, searched.keywords.get("shard_identifier")
    named = store.dense_vector_name
    request = {
        "collection_name": store.collection_name,
        "ids": list(ids),
        "with_payload": ["_node_content", store.text_key],
        "with_vectors": [named] if named else True,
    }
    if shard is not None:
        # Ids are distinct inside of a shard alone.
        request["shard_key_selector"] = store._generate_shard_key_selector(shard)  # noqa: SLF001
    return request


def _records(store: Any, points: Iterable[Any], ids: Sequence[str]) -> dict[str, Record]:
    named, nodes = store.dense_vector_name, {_point_id(name): name for name in ids}
    records: dict[str, Record] = {}
    for point in points:
        vector = point.vector.get(named or "") if isinstance(point.vector, dict) else point.vector
        name = nodes.get(str(point.id), str(point.id))
        records[name] = Record(vector, _text(point.payload or {}, store.text_key))
    return records


def _point_id(name: str) -> str:
    """What Qdrant calls a node: it writes a UUID with dashes, whatever form it was given in."""
    try:
        return str(UUID(name))
    except ValueError:
        return name


def _text(payload: Mapping[str, Any], key: str) -> str | None:
    if "_node_content" in payload:
        text: str | None = json.loads(payload["_node_content"]).get("text")
        return text or payload.get(key)
    return payload.get(key)


ADAPTER = StoreAdapter(_read, _aread)
