"""The frameworks' stores in memory: LangChain's `InMemoryVectorStore` and LlamaIndex's `SimpleVectorStore`."""

from collections.abc import Mapping, Sequence

from oprag.stores.adapter import StoreAdapter, StoredVector

__all__ = ["LangChainInMemory", "LlamaIndexSimple"]


class LangChainInMemory(StoreAdapter):
    """LangChain's `InMemoryVectorStore`."""

    by_vector = "similarity_search_with_score_by_vector"

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by id."""
        rows = (self.store.store[key] for key in keys if key in self.store.store)
        return {row["id"]: StoredVector(row["vector"], row["text"]) for row in rows}

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`: reading memory is not worth a thread."""
        return self.vectors(keys)


class LlamaIndexSimple(StoreAdapter):
    """LlamaIndex's `SimpleVectorStore`, which keeps no texts."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of nodes by id."""
        vectors, texts = self.store.data.embedding_dict, self.docstore_texts(keys)
        return {key: StoredVector(vectors[key], texts.get(key)) for key in keys if key in vectors}

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`: reading memory is not worth a thread."""
        return self.vectors(keys)
