"""Pinecone: LangChain's `PineconeVectorStore`."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
        return self._stored([self.store.index.fetch(**request) for request in self._requests(keys)])

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Async version of `vectors`, with the async client."""
        # The store opens an async client for each use and closes it afterwards.
        async with self.store._async_index_context() as index:  # noqa: SLF001
            return self._stored(await asyncio.gather(*(index.fetch(**request) for request in self._requests(keys))))

    def _requests(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        namespace = self.search.get("namespace")
        if namespace is None:
            namespace = self.store._namespace  # noqa: SLF001 - no public attribute
        return [{"ids": list(part), "namespace": namespace} for part in parts(keys, _IDS_A_REQUEST)]

    def _stored(self, responses: Iterable[Any]) -> dict[str, StoredVector]:
        text = self.store._text_key  # noqa: SLF001
        return {
            key: StoredVector(found.values, (found.metadata or {}).get(text))
            for response in responses
            for key, found in response.vectors.items()
        }
