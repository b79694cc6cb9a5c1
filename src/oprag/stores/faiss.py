"""FAISS: LangChain's `FAISS`, and LlamaIndex's `FaissVectorStore` and `FaissMapVectorStore`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from oprag.errors import OptionError
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, is_named, refuse_unknown
from oprag.stores.docstore import listed_in
from oprag.stores.llama_index_nodes import docstore_rows, put_rows, texts_in

__all__ = ["LangChainFaiss", "LlamaIndexFaiss"]


class LangChainFaiss(StoreAdapter):
    """LangChain's `FAISS`."""

    by_vector = "similarity_search_with_score_by_vector"
    in_insertion_order = True

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id; empty if the index does not store exact vectors."""
        requested = set(keys)
        rows = {key: row for row, key in self.store.index_to_docstore_id.items() if key in requested}
        found = [(key, vector, self._document(key)) for key, vector in _exact_vectors(self.store.index, rows).items()]
        return {key: StoredVector(vector, one.page_content) for key, vector, one in found if one is not None}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by row of the index."""
        return [key for key in self._keys if key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks by row of the index."""
        given, documents = self.search.get("filter"), getattr(self.store.docstore, "_dict", None)
        # A loop of `search` takes three times as long.
        find: Any = documents.get if isinstance(documents, dict) else self._document
        found = ((key, document) for key in self._keys if (document := find(key)) is not None)
        if field:
            # Before anything else: a question that reads neighbors scans the whole store.
            found = ((key, document) for key, document in found if is_named(document.metadata.get(field), sources))
        if given is not None:
            passes = self.store._create_filter_func(given)  # noqa: SLF001
            found = ((key, document) for key, document in found if passes(document.metadata))
        return (StoredChunk(key, document.page_content, document.metadata) for key, document in found)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the documents by copies, because callers may have references to the originals."""
        documents = getattr(self.store.docstore, "_dict", None)
        if not isinstance(documents, dict):
            # Other docstores would have to delete a document before replacing it; an interruption would lose it.
            kind = type(self.store.docstore).__name__
            raise OptionError(
                f"oprag can write metadata to a FAISS store with an InMemoryDocstore only, got {kind}", kind
            )
        refuse_unknown(self, added, documents)
        changed = {key: {**documents[key].metadata, **more} for key, more in added.items()}
        documents.update({key: documents[key].model_copy(update={"metadata": about}) for key, about in changed.items()})

    @property
    def _keys(self) -> list[str]:
        # Copied: another thread may add to the table.
        return list(self.store.index_to_docstore_id.values())

    def _document(self, key: str) -> Any:
        """Return a document; None if it is missing, for which `search` returns a message as a string."""
        document = self.store.docstore.search(key)
        return None if isinstance(document, str) else document


class LlamaIndexFaiss(StoreAdapter):
    """LlamaIndex's `FaissVectorStore` and `FaissMapVectorStore`, which do not store texts."""

    in_insertion_order = True
    # Its search supports no filters, and ignores `node_ids`.
    filters = ("doc_ids",)
    settings = ("node_ids",)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of nodes by id; empty if the index does not store exact vectors."""
        rows = self._rows or {}
        vectors = _exact_vectors(self.store.client, {key: rows[key] for key in keys if key in rows})
        texts = texts_in(self.docstore, vectors)
        return {key: StoredVector(vector, texts.get(key)) for key, vector in vectors.items()}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by row of the index."""
        rows = self._rows or {}
        return sorted((key for key in keys if key in rows), key=rows.__getitem__)

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the nodes by row; None if several nodes share a row."""
        ids = None if self._rows is None else self.in_sequence({*self.nodes.values()})
        return None if ids is None else listed_in(self.docstore, ids, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes in the docstore; the vector store has no metadata."""
        rows = docstore_rows(self.docstore, added)
        refuse_unknown(self, added, rows.keys() & {*self.nodes.values()})
        put_rows(self.docstore, rows)

    @property
    def deletable(self) -> bool:  # type: ignore[override]
        """Whether nodes can be deleted, as from FaissMapVectorStore only."""
        return hasattr(self.store, "_node_id_to_faiss_id_map")

    @property
    def _rows(self) -> Mapping[str, int] | None:
        """The rows of the nodes in the index; None if several nodes share one."""
        # FaissMapVectorStore numbers the nodes itself, after a deletion with numbers that other nodes already have.
        own: Mapping[str, int] | None = getattr(self.store, "_node_id_to_faiss_id_map", None)
        rows = {key: int(row) for row, key in self.nodes.items()} if own is None else own
        return rows if own is None or len({*rows.values()}) == len(rows) else None


# Index types that store exact vectors. Others silently reconstruct approximations.
_EXACT = ("IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexHNSWFlat", "IndexIVFFlat")


def _exact_vectors(index: Any, rows: Mapping[str, int]) -> dict[str, Any]:
    """Return the vectors in these rows by key; none if the index cannot return exact vectors."""
    import faiss

    index = faiss.downcast_index(index)
    inside = faiss.downcast_index(index.index) if type(index).__name__ == "IndexIDMap2" else index
    if type(inside).__name__ not in _EXACT or not rows:
        return {}
    try:
        return dict(zip(rows, index.reconstruct_batch([*rows.values()]), strict=True))
    except RuntimeError:
        # An IVF index without a direct map; building one would change the user's index.
        return {}
