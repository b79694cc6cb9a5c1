"""LangChain's retrievers that have the documents themselves: by words, by vectors in memory, and by parts of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.positions.insertion_order import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector, chunks_with

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["NO_FILTERS", "ListedDocuments"]

NO_FILTERS = frozenset({"fetch_k", "k", "lambda_mult", "score_threshold"})
"""Keywords of a search that keep no document from being found."""


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
        searched = {**self.search, **(getattr(self.store, "search_kwargs", None) or {})}
        filtered = any(value for name, value in searched.items() if name not in NO_FILTERS)
        return None if filtered or self._documents is None else chunks_with(self._all_chunks(), field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the documents, since callers may hold those that were found."""
        if self._documents is None:
            super().write(added)
        documents = list(self._documents or ())
        rows: dict[str, int] = {}
        for row, document in enumerate(documents):
            key = document.id or document.page_content
            if key in rows and key in added:
                raise OptionError(f"{self.name} has several documents with the id or text {describe(key)}", key)
            rows[key] = row
        self.refuse_unknown(added, rows)
        for key, more in added.items():
            document = documents[rows[key]]
            documents[rows[key]] = document.model_copy(update={"metadata": {**document.metadata, **more}})
        self._replace(documents)

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
        kept = self._kept
        return None if kept is None else [one for one in list(kept.values()) if isinstance(one, Document)]

    def _replace(self, documents: list[Document]) -> None:
        """Put other documents where those are that `_documents` lists."""
        if getattr(self.store, "docs", None) is not None:
            self.store.docs[:] = documents
        elif getattr(self.store, "texts", None) is not None:
            self.store.metadatas = [document.metadata for document in documents]
        elif (kept := self._kept) is not None:
            keys = [key for key, one in kept.items() if isinstance(one, Document)]
            kept.update(zip(keys, documents, strict=True))

    @property
    def _kept(self) -> dict[str, Any] | None:
        """The docstore of a retriever of parents: other ones than the dictionary list them in any sequence."""
        kept = getattr(getattr(self.store, "docstore", None), "store", None)
        return kept if type(kept) is dict else None
