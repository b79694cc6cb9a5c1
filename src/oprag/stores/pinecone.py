"""Pinecone: LangChain's `PineconeVectorStore`."""

from collections.abc import Mapping, Sequence

from oprag.stores.adapter import StoreAdapter, StoredVector, parts

__all__ = ["LangChainPinecone"]

# Ids are part of the request's URL, which must not get too long.
_IDS_A_REQUEST = 100


class LangChainPinecone(StoreAdapter):
    """LangChain's `PineconeVectorStore`."""

    by_vector = "similarity_search_by_vector_with_score"

    @property
    def restrictions(self) -> frozenset[str]:
        """The keyword arguments that may restrict the search, including a namespace of the store."""
        return super().restrictions | ({"namespace"} if self.store._namespace else frozenset())  # noqa: SLF001

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id."""
        namespace, text = self.search.get("namespace"), self.store._text_key  # noqa: SLF001 - no public attributes
        if namespace is None:
            namespace = self.store._namespace  # noqa: SLF001
        responses = (self.store.index.fetch(list(part), namespace) for part in parts(keys, _IDS_A_REQUEST))
        return {
            key: StoredVector(found.values, (found.metadata or {}).get(text))
            for response in responses
            for key, found in response.vectors.items()
        }
