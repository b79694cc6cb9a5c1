"""The order as a step of a LangChain compression pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict

from oprag.build import build_context
from oprag.fields import AssemblyFields
from oprag.langchain.documents import chunks_of, documents_of

__all__ = ["OrderPreservingCompressor"]


class OrderPreservingCompressor(AssemblyFields, BaseDocumentCompressor):
    """Puts documents into the order of their source; the last step of a compression pipeline.

    Ranks are the places in the given list, so it stands behind rerankers and filters: a later step that cuts the list
    would keep the first documents of the source in place of the best.

    Args:
        annotate: Give copies of the documents with rank, score, position and span under the metadata key "oprag".
        **options: The options of `oprag.Assembly`; `stitch` is off by default.

    Raises:
        ValidationError: An option is unknown or has a value that it cannot have (pydantic's error, which is a
            ValueError).

    Example:
        >>> documents = [Document(text, metadata={"source": "abc", "start_index": "abc".index(text)}) for text in "cab"]
        >>> [document.page_content for document in OrderPreservingCompressor(k=2).compress_documents(documents, "?")]
        ['a', 'c']
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,  # noqa: ARG002
        callbacks: Callbacks | None = None,  # noqa: ARG002
    ) -> list[Document]:
        """The documents, given best first, in the order of their source.

        Raises:
            ChunkError: Something is no `Document`.
            BudgetError: Documents were given, and not one fits `token_budget`.
        """
        return documents_of(build_context(chunks_of(documents), self._assembly()), annotate=self.annotate)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """As `compress_documents`; nothing in it waits, so no thread is needed."""
        return self.compress_documents(documents, query, callbacks)
