"""Stores in memory: `InMemoryVectorStore` (LangChain), `SimpleVectorStore` (LlamaIndex) and oprag's `DocumentIndex`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with, refuse_unknown
from oprag.stores.docstore import listed_in
from oprag.stores.llama_index_nodes import docstore_rows, put_rows, texts_in

__all__ = ["LangChainInMemory", "LlamaIndexSimple", "OwnIndex"]


class LangChainInMemory(StoreAdapter):
    """LangChain's `InMemoryVectorStore`."""

    by_vector = "similarity_search_with_score_by_vector"
    in_insertion_order = True

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Return the vectors of documents by id."""
        rows = (self.store.store[key] for key in keys if key in self.store.store)
        return {row["id"]: StoredVector(row["vector"], row["text"]) for row in rows}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by the order of the store's dictionary."""
        # Copy the keys: another thread may add to the dictionary.
        return [key for key in list(self.store.store) if key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks in the order of the store."""
        rows = (StoredChunk(row["id"], row["text"], row["metadata"] or {}) for row in list(self.store.store.values()))
        return chunks_with(filter(self._passes, rows) if self.search.get("filter") else rows, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the entries by copies, because documents of earlier searches share their metadata."""
        rows = self.store.store
        refuse_unknown(self, added, rows)
        changed = {key: {**(rows[key]["metadata"] or {}), **more} for key, more in added.items()}
        rows.update({key: {**rows[key], "metadata": metadata} for key, metadata in changed.items()})

    def _passes(self, chunk: StoredChunk) -> bool:
        from langchain_core.documents import Document

        return bool(self.search["filter"](Document(chunk.text, id=chunk.key, metadata=dict(chunk.metadata))))


class LlamaIndexSimple(StoreAdapter):
    """LlamaIndex's `SimpleVectorStore`, which does not store texts."""

    in_insertion_order = True
    filters = ("filters", "node_ids", "doc_ids")

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Return the vectors of nodes by id."""
        vectors, texts = self.store.data.embedding_dict, texts_in(self.docstore, keys)
        return {key: StoredVector(vectors[key], texts.get(key)) for key in keys if key in vectors}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by the order of the store's dictionary."""
        return [key for key in list(self.store.data.embedding_dict) if key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterator[StoredChunk]:
        """List the nodes of the index in the order of the store."""
        from llama_index.core.vector_stores.utils import build_metadata_filter_fn

        flat = self.store.data.metadata_dict
        passes = build_metadata_filter_fn(flat.__getitem__, self.search.get("filters"))
        only = self.search.get("node_ids")
        # Several indexes may share one store.
        among = {*(only if only is not None else self.nodes or self.store.data.embedding_dict)}
        ids = [key for key in list(self.store.data.embedding_dict) if key in among and passes(key)]
        yield from listed_in(self.docstore, ids, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes in the store and in the docstore."""
        rows, flat = docstore_rows(self.docstore, added), self.store.data.metadata_dict
        refuse_unknown(self, added, rows.keys() & self.store.data.embedding_dict.keys())
        flat.update({key: {**flat[key], **added[key]} for key in added.keys() & flat.keys()})
        # The docstore last: nodes are listed from it, so a rerun finds nodes that an interruption left undone.
        put_rows(self.docstore, rows)


class OwnIndex(StoreAdapter):
    """oprag's `DocumentIndex`; the row numbers of its chunks are their keys."""

    deletable = False

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Return the vectors of chunks; empty for an index without vectors."""
        if self.store.embedder is None:
            return {}
        chunks, vectors = self.store.chunks, self.store.vectors
        rows = (int(key) for key in keys if key.isdecimal() and int(key) < len(chunks))
        return {str(row): StoredVector(vectors[row], chunks[row].text) for row in rows}

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks by row number."""
        rows = (StoredChunk(chunk.id, chunk.text, chunk.metadata) for chunk in self.store.chunks)
        return chunks_with(rows, field, sources)
