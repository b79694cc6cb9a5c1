"""The source order as a step of a LangChain compression pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import model_validator

from oprag._internal.sync_async import Steps, run_async, run_sync
from oprag.adapters.fields import PUBLIC_CONFIG, ContextFields
from oprag.adapters.name_hints import LANGCHAIN_COMPRESSOR
from oprag.chunk import by_rank
from oprag.context import ContextInputs, assemble_in_steps
from oprag.langchain.documents import chunks_of, documents_of
from oprag.langchain.vectors import EmbeddingsFields, check_sources, neighbor_reader, vector_sources
from oprag.options import check_question, refuse_filter
from oprag.pipeline.neighbors import NeighborReader
from oprag.pipeline.select import warn_about_few

__all__ = ["OrderPreservingCompressor"]


class OrderPreservingCompressor(EmbeddingsFields, ContextFields, BaseDocumentCompressor):
    """Puts documents in the order of their source; the last step of a compression pipeline.

    A document's rank is its index in the given list, so put this step after rerankers and filters. A later step that
    cuts the list would keep the first documents of the source instead of the best.

    Args:
        embeddings: For the thresholds: LangChain's `Embeddings` or an `oprag.Embedder`.
        vector_cache: Cache of computed vectors; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: a function that takes a document and a number and returns the documents around
            it, or a `DocumentIndex`. The filter of the search is not applied to neighbors, because a compressor does
            not receive it.
        read_source: Where to read the full text of a source: a folder of text, Markdown and PDF files, a mapping of
            source names to texts, or a function that takes the name. Chunks without a position in their metadata are
            searched in the text of their source, which is read once.
        annotate: Return copies of the documents with rank, score, position and span under the metadata key "oprag".
        **options: The options of `oprag.ContextOptions`; `stitch` is off by default.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).

    Example:
        >>> from langchain_core.documents import Document
        >>> documents = [Document(text, metadata={"source": "abc", "start_index": "abc".index(text)}) for text in "cab"]
        >>> [document.page_content for document in OrderPreservingCompressor(k=2).compress_documents(documents, "?")]
        ['a', 'c']
    """

    model_config = PUBLIC_CONFIG

    _name_hints: ClassVar = LANGCHAIN_COMPRESSOR

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        for name in ("read_neighbors", "read_source"):
            refuse_filter(name, getattr(self, name), "a compressor does not receive the filter of the search")
        check_sources(self._context_options, lambda: vector_sources(self), self._neighbors)
        return self

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002
    ) -> list[Document]:
        """Put documents, given best first, in the order of their source.

        Raises:
            ChunkError: An item is not a `Document`.
            BudgetError: None of the given documents fits `token_budget`.
            EmbeddingError: A threshold is set, and a vector is missing or unusable.
        """
        return run_sync(self._compressed(documents, query))

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002
    ) -> list[Document]:
        """Async version of `compress_documents`."""
        return await run_async(self._compressed(documents, query))

    def _compressed(self, documents: Sequence[Document], query: str) -> Steps[list[Document]]:
        options = self._context_options
        inputs = ContextInputs(by_rank(chunks_of(documents), documents), None, self._neighbors())
        warn_about_few(inputs.chunks, options.k)
        if options.needs_vectors:
            # Loads NumPy.
            from oprag.stores.vectors import given_with_vectors

            check_question(query)
            inputs = yield from given_with_vectors(inputs, query, options, vector_sources(self))
        if self.read_source is not None:
            inputs = yield from self._orders.complete(inputs, options, (), self._source_texts)
        return documents_of((yield from assemble_in_steps(inputs, options)), annotate=self.annotate)

    def _neighbors(self) -> NeighborReader | None:
        return neighbor_reader(self.read_neighbors, lambda: None)
