"""The frameworks' stores in memory: LangChain's `InMemoryVectorStore` and LlamaIndex's `SimpleVectorStore`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from oprag.positions.insertion import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector, chunks_with

__all__ = ["LangChainInMemory", "LlamaIndexSimple"]


class LangChainInMemory(StoreAdapter):
    """LangChain's `InMemoryVectorStore`."""

    by_vector = "similarity_search_with_score_by_vector"
    in_insertion_order = True

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by id."""
        rows = (self.store.store[key] for key in keys if key in self.store.store)
        return {row["id"]: StoredVector(row["vector"], row["text"]) for row in rows}

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`: reading memory is not worth a thread."""
        return self.vectors(keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """The ids in the sequence of the store, which is a dictionary."""
        # A copy, since another thread may add to it.
        return [key for key in list(self.store.store) if key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """The chunks in the sequence of the store."""
        rows = (StoredChunk(row["id"], row["text"], row["metadata"]) for row in list(self.store.store.values()))
        return chunks_with(rows, field, sources, self._passes if self.search.get("filter") else None)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the entries at once, since documents of earlier searches share their metadata."""
        rows = self.store.store
        self.refuse_unknown(added, rows)
        rows.update({key: {**rows[key], "metadata": {**rows[key]["metadata"], **more}} for key, more in added.items()})

    def _passes(self, chunk: StoredChunk) -> bool:
        from langchain_core.documents import Document

        return bool(self.search["filter"](Document(chunk.text, id=chunk.key, metadata=dict(chunk.metadata))))


class LlamaIndexSimple(StoreAdapter):
    """LlamaIndex's `SimpleVectorStore`, which keeps no texts."""

    in_insertion_order = True

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of nodes by id."""
        vectors, texts = self.store.data.embedding_dict, self.docstore_texts(keys)
        return {key: StoredVector(vectors[key], texts.get(key)) for key in keys if key in vectors}

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`: reading memory is not worth a thread."""
        return self.vectors(keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """The ids in the sequence of the store, which is a dictionary."""
        return [key for key in list(self.store.data.embedding_dict) if key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """The nodes in the sequence of the store; None where a filter leaves some out."""
        if self.search:
            return None
        nodes = self.docstore.get_nodes(list(self.store.data.embedding_dict), raise_error=False)
        rows = (StoredChunk(node.node_id, node.get_content(), node.metadata, node=node) for node in nodes)
        return chunks_with(rows, field, sources)
