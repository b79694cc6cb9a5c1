"""LangChain's retrievers that have the documents themselves: by words, by vectors in memory, and by parts of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_core.documents import Document

from oprag.positions.insertion import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector, chunks_with

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["ListedDocuments"]


class ListedDocuments(StoreAdapter):
    """`BM25Retriever`, `TFIDFRetriever`, `KNNRetriever`, `MultiVectorRetriever` and `ParentDocumentRetriever`.

    Their documents need not have ids: their texts are the keys.
    """

    in_insertion_order = True

    def key(self, chunk: Chunk) -> str:
        """The text of a document."""
        return chunk.text

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:  # noqa: ARG002
        """None: these retrievers give no vectors."""
        return {}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str] | None:
        """The texts in the sequence of the documents."""
        return None if self._documents is None else [chunk.key for chunk in self._all_chunks() if chunk.key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """The documents in their sequence; None where a filter leaves some out."""
        filtered = self.search.get("filter") or (getattr(self.store, "search_kwargs", None) or {}).get("filter")
        return None if filtered or self._documents is None else chunks_with(self._all_chunks(), field, sources)

    def _all_chunks(self) -> Iterator[StoredChunk]:
        # A copy, since another thread may add to it.
        for document in list(self._documents or ()):
            yield StoredChunk(document.page_content, document.page_content, document.metadata, document.id or "")

    @property
    def _documents(self) -> Iterable[Document] | None:
        listed = getattr(self.store, "docs", None)
        if listed is not None:
            documents: list[Document] = listed
            return documents
        texts = getattr(self.store, "texts", None)
        if texts is not None:
            metadatas = getattr(self.store, "metadatas", None) or [{} for _ in texts]
            return [Document(text, metadata=about) for text, about in zip(texts, metadatas, strict=True)]
        # Other stores of documents than the dictionary list them in any sequence.
        kept = getattr(getattr(self.store, "docstore", None), "store", None)
        return [one for one in list(kept.values()) if isinstance(one, Document)] if type(kept) is dict else None
