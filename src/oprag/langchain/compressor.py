"""The order as a step of a LangChain compression pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, model_validator

from oprag.assembly.select import warn_about_few
from oprag.context import ContextInputs, assembling
from oprag.errors import OptionError
from oprag.langchain.documents import chunks_of, documents_of
from oprag.langchain.embeddings_fields import EmbeddingsFields
from oprag.langchain.near_misses import COMPRESSOR
from oprag.option_fields import ContextFields
from oprag.question import check_question
from oprag.steps import Steps, run_async, run_sync

if TYPE_CHECKING:
    from oprag.assembly.neighbors import NeighborReader

__all__ = ["OrderPreservingCompressor"]


class OrderPreservingCompressor(EmbeddingsFields, ContextFields, BaseDocumentCompressor):
    """Puts documents into the order of their source; the last step of a compression pipeline.

    Ranks are the places in the given list, so it stands behind rerankers and filters: a later step that cuts the list
    would keep the first documents of the source in place of the best.

    Args:
        embeddings: For the thresholds: LangChain's `Embeddings` or an `oprag.Embedder`.
        vector_cache: Where vectors that were made are kept; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: a function of a document and a number that returns the documents around it, or
            a `DocumentIndex`. They are used whatever the filter of the search, which a compressor does not see.
        annotate: Give copies of the documents with rank, score, position and span under the metadata key "oprag".
        **options: The options of `oprag.ContextOptions`; `stitch` is off by default.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).

    Example:
        >>> documents = [Document(text, metadata={"source": "abc", "start_index": "abc".index(text)}) for text in "cab"]
        >>> [document.page_content for document in OrderPreservingCompressor(k=2).compress_documents(documents, "?")]
        ['a', 'c']
    """

    model_config = ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=False
    )

    _near_misses: ClassVar = COMPRESSOR

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        """Refuse thresholds and neighbours for which nothing is at hand, before the first documents."""
        if self.embeddings is not None:
            # Loaded only for who gives them.
            from oprag.langchain.embedder import as_embedder

            as_embedder(self.embeddings)
        elif self._context_options().needs_vectors:
            raise OptionError("thresholds need vectors, and nothing makes them here; give embeddings=", None)
        if self._neighbors() is None and self.neighbors:
            raise OptionError(
                "neighbors needs read_neighbors=, a function that returns the documents around one, or the "
                "DocumentIndex that is searched",
                self.neighbors,
            )
        return self

    def _neighbors(self) -> NeighborReader | None:
        """What reads the chunks around one."""
        from oprag.langchain.around import neighbor_reader

        return neighbor_reader(self.read_neighbors, None)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002
    ) -> list[Document]:
        """The documents, given best first, in the order of their source.

        Raises:
            ChunkError: Something is no `Document`.
            BudgetError: Documents were given, and not one fits `token_budget`.
            EmbeddingError: A threshold is set, and a vector cannot be had or cannot be used.
        """
        return run_sync(self._compressed(documents, query))

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002
    ) -> list[Document]:
        """As `compress_documents`, async."""
        return await run_async(self._compressed(documents, query))

    def _compressed(self, documents: Sequence[Document], query: str) -> Steps[list[Document]]:
        """What is done, sync or async."""
        context_options = self._context_options()
        given = ContextInputs(chunks_of(documents), None, self._neighbors())
        warn_about_few(given.chunks, context_options.k)
        if context_options.needs_vectors:
            # Loaded only for who wants thresholds.
            from oprag.embedding.vectors import given_with_vectors
            from oprag.langchain.compression import sources_for

            check_question(query)
            sources = sources_for(self, None, {})
            given = yield from given_with_vectors(given, query, context_options, sources)
        return documents_of((yield from assembling(given, context_options)), annotate=self.annotate)
