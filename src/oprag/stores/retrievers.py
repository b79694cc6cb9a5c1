"""LangChain's retrievers that contain their documents: BM25, TF-IDF, multi-vector and parent document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from oprag.chunk import Chunk
from oprag.positions.fields import PAGE_NUMBER_FIELDS
from oprag.positions.values import ordinal
from oprag.stores.adapter import StoreAdapter, StoredChunk, chunks_with, restrictions_of

__all__ = ["ListedDocuments"]


class ListedDocuments(StoreAdapter):
    """`BM25Retriever`, `TFIDFRetriever`, `MultiVectorRetriever` and `ParentDocumentRetriever`.

    Texts with their pages are the keys, because the documents need not have ids.
    """

    in_insertion_order = True
    deletable = False
    filters = ()

    @property
    def restrictions(self) -> frozenset[str]:
        """The keyword arguments that may restrict the search, including those of the retriever itself."""
        return super().restrictions | restrictions_of(getattr(self.store, "search_kwargs", None) or {})

    def key(self, chunk: Chunk) -> str:
        """Return the text of a document, with its page."""
        return _key(chunk.text, chunk.metadata)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str] | None:
        """Sort texts by the order of the documents."""
        listed = self.chunks()
        return None if listed is None else [chunk.key for chunk in listed if chunk.key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the documents in order; None for a docstore that is not a dictionary, whose order is arbitrary."""
        listed = getattr(self.store, "docs", None)
        if listed is None:
            parents = getattr(getattr(self.store, "docstore", None), "store", None)
            if type(parents) is not dict:
                return None
            listed = parents.values()
        # Copied: another thread may add to it.
        return chunks_with((_stored(one) for one in list(listed) if isinstance(one, Document)), field, sources)


def _stored(document: Document) -> StoredChunk:
    text, metadata = document.page_content, document.metadata
    return StoredChunk(_key(text, metadata), text, metadata, document.id or "")


def _key(text: str, metadata: Mapping[str, Any]) -> str:
    # Normalized, because a page from another store, such as 1.0, is the same page.
    pages = (ordinal(metadata.get(field)) for field in PAGE_NUMBER_FIELDS)
    page = next((page for page in pages if page is not None), None)
    return text if page is None else f"{text}\0{page}"
