"""Qdrant."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:
    named = store.vector_name
    points = store.client.retrieve(
        collection_name=store.collection_name,
        # Ids are whole numbers or UUIDs, and keys are strings.
        ids=[int(key) if key.isdecimal() else key for key in keys],
        with_payload=[store.content_payload_key],
        with_vectors=[named] if named else True,
        # Ids are distinct inside of a shard key alone.
        **{name: search[name] for name in ("consistency", "shard_key_selector", "timeout") if search.get(name)},
    )
    records: dict[str, Record] = {}
    for point in points:
        vector = point.vector.get(named) if isinstance(point.vector, dict) else point.vector
        records[str(point.id)] = Record(vector, (point.payload or {}).get(store.content_payload_key, ""))
    return records


def _key(document: Document) -> str | None:
    """The id of a document, which this store keeps in its metadata."""
    key = document.metadata.get("_id", document.id)
    return None if key is None else str(key)


def _alike(store: Any, search: Mapping[str, Any]) -> bool:  # noqa: ARG001
    """Whether words are not looked at: a search by a vector is dense alone."""
    return str(getattr(store.retrieval_mode, "value", store.retrieval_mode)) == "dense"


ADAPTER = StoreAdapter(_read, key=_key, by_vector="similarity_search_with_score_by_vector", alike=_alike)
