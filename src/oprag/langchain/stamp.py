"""Stamping positions on documents before they go into a store."""

from __future__ import annotations

import os
from collections.abc import Iterable

from langchain_core.documents import Document

from oprag.langchain.documents import chunks_of
from oprag.positions.sources import SourceKey
from oprag.positions.stamp import stamps

__all__ = ["stamp_positions"]


def stamp_positions(
    documents: Iterable[Document],
    source: str | os.PathLike[str] | None = None,
    *,
    source_key: SourceKey | None = None,
) -> list[Document]:
    """Number the chunks of each source, so that their order is known whatever store they go through.

    Call it once with all chunks of a source in their sequence, after the splitter. It works over pages: the numbers of
    a PDF that was loaded page by page run through. Each call starts at 0, so chunks of one source that were stamped in
    several calls cannot be ordered by their numbers: a loop over `lazy_load()` must collect the pages of a file first.
    Where the page numbers of a source go back, a warning says so, and the chunks are numbered in the given sequence.

    Args:
        documents: The chunks of one or many sources, each source in sequence.
        source: The name of the source, for documents that do not say; it is stamped as `source`.
        source_key: See `oprag.ContextOptions.source_key`.

    Returns:
        Copies with two more metadata keys: `chunk_index`, a whole number from 0 in each source, and `chunk_numbering`,
        a short hash of the texts that were numbered together.

    Raises:
        ChunkError: Something is no `Document`.
        MissingSourceError: A document does not say its source, and `source` is not given.

    Example:
        >>> pages = [Document("one", metadata={"page": 0}), Document("two", metadata={"page": 1})]
        >>> stamped = stamp_positions(pages, source="book.pdf")
        >>> [(document.metadata["page"], document.metadata["chunk_index"]) for document in stamped]
        [(0, 0), (1, 1)]
    """
    chunks = chunks_of(documents)
    return [
        chunk.origin.model_copy(update={"metadata": {**chunk.metadata, **stamp}})
        for chunk, stamp in zip(chunks, stamps(chunks, source, source_key), strict=True)
    ]
