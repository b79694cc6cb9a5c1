"""Stamping positions on documents before they go into a store."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_core.documents import Document

from oprag.langchain.documents import chunks_of
from oprag.source import SourceKey
from oprag.stamp import stamps

__all__ = ["stamp_positions"]


def stamp_positions(
    documents: Iterable[Document], source: str | None = None, *, source_key: SourceKey | None = None
) -> list[Document]:
    """Number the chunks of each source, so that their order is known whatever store they go through.

    Call it once, on all chunks of a source in their sequence, behind the splitter. It works over pages: the numbers of
    a PDF that was loaded page by page run through.

    Args:
        documents: The chunks of one or many sources, each source in sequence.
        source: The name of the source, for documents that do not say; it is stamped as `source`.
        source_key: See `oprag.Assembly.source_key`.

    Returns:
        Copies with `chunk_index` in their metadata, a whole number from 0 in each source.

    Raises:
        ChunkError: Something is no `Document`.
        MissingSourceError: A document does not say its source, and `source` is not given.

    Example:
        >>> pages = [Document("one", metadata={"page": 0}), Document("two", metadata={"page": 1})]
        >>> [document.metadata for document in stamp_positions(pages, source="book.pdf")]
        [{'page': 0, 'source': 'book.pdf', 'chunk_index': 0}, {'page': 1, 'source': 'book.pdf', 'chunk_index': 1}]
    """
    chunks = chunks_of(documents)
    return [
        chunk.origin.model_copy(update={"metadata": {**chunk.metadata, **stamp}})
        for chunk, stamp in zip(chunks, stamps(chunks, source, source_key), strict=True)
    ]
