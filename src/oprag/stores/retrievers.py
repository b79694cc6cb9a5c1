"""LangChain's retrievers that contain their documents: BM25, TF-IDF, KNN, multi-vector and parent document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.positions.fields import PAGE_NUMBER_FIELDS
from oprag.positions.values import ordinal
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with, restrictions_of

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["ListedDocuments"]


class ListedDocuments(StoreAdapter):
    """`BM25Retriever`, `TFIDFRetriever`, `KNNRetriever`, `MultiVectorRetriever` and `ParentDocumentRetriever`.

    Texts with their pages are the keys, because the documents need not have ids.
    """

    in_insertion_order = True
    filters = ()

    @property
    def restrictions(self) -> frozenset[str]:
        """The keyword arguments that may restrict the search, including those of the retriever itself."""
        return super().restrictions | restrictions_of(getattr(self.store, "search_kwargs", None) or {})

    def key(self, chunk: Chunk) -> str:
        """Return the text of a document, with its page."""
        return _key(chunk.text, chunk.metadata)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:  # noqa: ARG002
        """Return nothing: these retrievers do not expose vectors."""
        return {}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str] | None:
        """Sort texts by the order of the documents."""
        return None if self._documents is None else [chunk.key for chunk in self._all_chunks() if chunk.key in keys]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the documents in order."""
        return None if self._documents is None else chunks_with(self._all_chunks(), field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the documents by copies, because callers may have references to documents that were retrieved."""
        if self._documents is None:
            super().write(added)
        documents = list(self._documents or ())
        rows: dict[str, int] = {}
        for row, document in enumerate(documents):
            key = document.id or _key(document.page_content, document.metadata)
            if key in rows and key in added:
                name = describe(document.id or document.page_content)
                raise OptionError(
                    f"{self.name} has several documents with the id or text {name}; give each its own", key
                )
            rows[key] = row
        self.refuse_unknown(added, rows)
        for key, more in added.items():
            document = documents[rows[key]]
            documents[rows[key]] = document.model_copy(update={"metadata": {**document.metadata, **more}})
        self._replace(documents)

    def _all_chunks(self) -> Iterator[StoredChunk]:
        # Copy the list: another thread may add to it.
        for document in list(self._documents or ()):
            text, metadata = document.page_content, document.metadata
            yield StoredChunk(_key(text, metadata), text, metadata, document.id or "")

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
        parents = self._parents
        return None if parents is None else [one for one in list(parents.values()) if isinstance(one, Document)]

    def _replace(self, documents: list[Document]) -> None:
        """Replace the documents that `_documents` lists."""
        if getattr(self.store, "docs", None) is not None:
            self.store.docs[:] = documents
        elif getattr(self.store, "texts", None) is not None:
            self.store.metadatas = [document.metadata for document in documents]
        elif (parents := self._parents) is not None:
            keys = [key for key, one in parents.items() if isinstance(one, Document)]
            parents.update(zip(keys, documents, strict=True))

    @property
    def _parents(self) -> dict[str, Any] | None:
        """The parent documents by id; None for a docstore that is not a dictionary, whose order is arbitrary."""
        parents = getattr(getattr(self.store, "docstore", None), "store", None)
        return parents if type(parents) is dict else None


def _key(text: str, metadata: Mapping[str, Any]) -> str:
    # Normalized, because a page from another store, such as 1.0, is the same page.
    pages = (ordinal(metadata.get(field)) for field in PAGE_NUMBER_FIELDS)
    page = next((page for page in pages if page is not None), None)
    return text if page is None else f"{text}\0{page}"
