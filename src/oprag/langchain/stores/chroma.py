"""Chroma."""

from collections.abc import Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    found = store.get(ids=list(keys), include=["embeddings", "documents"])
    rows = zip(found["ids"], found["embeddings"], found["documents"], strict=True)
    return {key: Record(vector, text) for key, vector, text in rows}


# The scores of this method are distances, in spite of its name: those of the search by words.
ADAPTER = StoreAdapter(_read, by_vector="similarity_search_by_vector_with_relevance_scores")
