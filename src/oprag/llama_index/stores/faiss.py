"""FAISS."""

from collections.abc import Mapping, Sequence

from oprag.faiss_vectors import exact_vectors
from oprag.llama_index.stores.adapter import Searched, StoreAdapter
from oprag.llama_index.stores.texts import texts_of
from oprag.vector_sources import Record

__all__ = ["ADAPTER"]


def _read(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    wanted = set(ids)
    rows = {name: int(row) for row, name in searched.nodes.items() if name in wanted}
    vectors = exact_vectors(searched.vector_store.client, list(rows.values()))
    if vectors is None:
        return {}
    texts = texts_of(searched, list(rows))
    return {name: Record(vector, texts.get(name)) for name, vector in zip(rows, vectors, strict=True)}


ADAPTER = StoreAdapter(_read)
