"""FAISS."""

from collections.abc import Mapping, Sequence

from oprag.embedding.vectors import Record
from oprag.llama_index.stores.adapter import Searched, StoreAdapter
from oprag.llama_index.stores.texts import texts_of
from oprag.stores.faiss_index import exact_vectors

__all__ = ["ADAPTER"]


def _read(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    rows = _rows(searched, ids)
    vectors = exact_vectors(searched.vector_store.client, list(rows.values()))
    if vectors is None:
        return {}
    texts = texts_of(searched, list(rows))
    return {name: Record(vector, texts.get(name)) for name, vector in zip(rows, vectors, strict=True)}


def _rows(searched: Searched, ids: Sequence[str]) -> dict[str, int]:
    """What the index calls the vector of each node."""
    # FaissMapVectorStore, which can delete nodes, gives them numbers of its own.
    numbered = getattr(searched.vector_store, "_node_id_to_faiss_id_map", None)
    if numbered is None:
        wanted = set(ids)
        return {name: int(row) for row, name in searched.nodes.items() if name in wanted}
    if len(set(numbered.values())) < len(numbered):
        # After a deletion it gives out numbers that other nodes have.
        return {}
    return {name: numbered[name] for name in ids if name in numbered}


ADAPTER = StoreAdapter(_read)
