"""A LangChain retriever for `oprag.DocumentIndex`."""

from __future__ import annotations

from typing import ClassVar, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import Field, SkipValidation, model_validator

from oprag.adapters.fields import PUBLIC_CONFIG, OptionFields
from oprag.adapters.name_hints import LANGCHAIN_INDEX_RETRIEVER
from oprag.errors import OptionError
from oprag.index.document_index import DocumentIndex, SearchKind, check_search
from oprag.options import check_count, check_question

__all__ = ["DocumentIndexRetriever"]


class DocumentIndexRetriever(OptionFields, BaseRetriever):
    """Searches a `DocumentIndex` and returns documents best first.

    Wrap it in an `OrderPreservingRetriever`, or pass it to an `OrderPreservingChain`.

    Args:
        index: The index.
        k: Number of documents to return; 128 by default, the same as for a vector store.
        search: Type of search: "dense", "bm25" or "hybrid", as in `DocumentIndex.search`; by default "dense", or "bm25"
            for an index without an embedder.

    Raises:
        ValidationError: `index` is not a `DocumentIndex`, or `k` or `search` is invalid (pydantic's error).
    """

    model_config = PUBLIC_CONFIG

    _name_hints: ClassVar = LANGCHAIN_INDEX_RETRIEVER

    index: SkipValidation[DocumentIndex] = Field(description="The oprag.DocumentIndex to search.")
    k: SkipValidation[int] = Field(default=128, description="Number of documents to return.")
    search: SkipValidation[SearchKind | None] = Field(
        default=None,
        description="Type of search: dense, bm25 or hybrid; by default dense, or bm25 without an embedder.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not isinstance(self.index, DocumentIndex):
            raise OptionError(f"index must be an oprag.DocumentIndex, got {type(self.index).__name__}", self.index)
        check_count("k", self.k, optional=False)
        check_search(self.search, with_vectors=self.index.embedder is not None)
        return self

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        check_question(query)
        return [
            Document(chunk.text, id=chunk.id, metadata={**chunk.metadata, "relevance_score": chunk.score})
            for chunk in self.index.search(query, self.k if k is None else k, self.search)
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        # The base class would run the sync method in a thread without `k`.
        return await run_in_executor(None, self._get_relevant_documents, query, run_manager=run_manager.get_sync(), k=k)
