"""FAISS."""

from collections.abc import Mapping, Sequence
from typing import Any

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter
from oprag.stores.faiss_index import exact_vectors

__all__ = ["ADAPTER"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    wanted = set(keys)
    rows = {key: row for row, key in store.index_to_docstore_id.items() if key in wanted}
    vectors = exact_vectors(store.index, list(rows.values()))
    if vectors is None:
        return {}
    documents = {key: store.docstore.search(key) for key in rows}
    return {
        key: Record(vector, documents[key].page_content)
        for key, vector in zip(rows, vectors, strict=True)
        # The document store answers with a sentence when there is none.
        if not isinstance(documents[key], str)
    }


ADAPTER = StoreAdapter(_read, by_vector="similarity_search_with_score_by_vector")
