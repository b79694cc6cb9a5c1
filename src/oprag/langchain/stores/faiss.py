"""FAISS."""

from collections.abc import Mapping, Sequence
from typing import Any

from oprag.langchain.stores.adapter import StoreAdapter
from oprag.vector_sources import Record

__all__ = ["ADAPTER"]

# Indexes that hold vectors as they were given. Others reconstruct something else, without saying so.
_EXACT = ("IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexHNSWFlat", "IndexIVFFlat")


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:  # noqa: ARG001
    import faiss

    index = faiss.downcast_index(store.index)
    wanted = set(keys)
    rows = {key: row for row, key in store.index_to_docstore_id.items() if key in wanted}
    if type(index).__name__ not in _EXACT or not rows:
        return {}
    try:
        vectors = index.reconstruct_batch(list(rows.values()))
    except RuntimeError:
        # An inverted file without a direct map: making one would change the user's index.
        return {}
    records: dict[str, Record] = {}
    for key, vector in zip(rows, vectors, strict=True):
        document = store.docstore.search(key)
        # The document store answers with a sentence when there is none.
        if not isinstance(document, str):
            records[key] = Record(vector, document.page_content)
    return records


ADAPTER = StoreAdapter(_read, by_vector="similarity_search_with_score_by_vector")
