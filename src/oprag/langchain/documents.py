"""Convert documents to chunks, and chunks and passages to documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from oprag.chunk import Chunk, Passage, RankedList, chunk_to_dict, finite, first_of
from oprag.context import Context
from oprag.errors import ChunkError
from oprag.options import SourceKey
from oprag.pipeline.context_report import METADATA_KEY, common_metadata, passage_to_dict, span_of
from oprag.positions.stamp import stamps

__all__ = ["chunks_of", "documents_and_scores", "documents_of", "stamp_positions"]


def chunks_of(documents: Any, scores: Sequence[float | None] | None = None) -> list[Chunk]:
    """Convert documents, best first, to chunks; the rank of each is its index.

    Args:
        documents: An iterable of `Document`, as returned by a retriever.
        scores: The score of each document, if the search returned scores; by default the `relevance_score` that
            LangChain's rerankers add to the metadata.

    Raises:
        ChunkError: An item is not a `Document`, or its text is not a string.
    """
    if isinstance(documents, str) or not isinstance(documents, Iterable):
        raise ChunkError(f"expected a list of LangChain documents, got {type(documents).__name__}", documents)
    chunks: list[Chunk] = []
    for rank, document in enumerate(documents):
        if not isinstance(document, Document):
            raise ChunkError(f"expected LangChain documents, got {type(document).__name__} at index {rank}", document)
        metadata: Any = document.metadata
        score = None
        if scores is not None:
            score = scores[rank]
        elif (type(metadata) is dict or isinstance(metadata, Mapping)) and "relevance_score" in metadata:
            score = finite(metadata["relevance_score"])
        chunks.append(
            Chunk(document.page_content, rank, metadata=metadata, score=score, id=document.id, origin=document)
        )
    return chunks


def documents_and_scores(searched: Any, found: Any) -> tuple[list[Document], list[float | None] | None]:
    """Separate what a store or retriever returned; None for the scores if none is a number, since ranks are enough."""
    name = type(searched).__name__
    if not isinstance(found, list | tuple):
        raise ChunkError(f"{name} must return a list of documents, got {type(found).__name__}", found)
    if set(map(type, found)) == {Document}:
        return list(found), None
    documents: list[Document] = []
    scores: list[float | None] = []
    for place, item in enumerate(found):
        document, score = item if isinstance(item, tuple | list) and len(item) == 2 else (item, None)
        # Two documents are a batch of results, not one result.
        if not isinstance(document, Document) or isinstance(score, Document):
            raise ChunkError(
                f"{name} must return documents, alone or as (document, score), got {type(item).__name__} at index "
                f"{place}",
                item,
            )
        documents.append(document)
        scores.append(finite(score))
    return documents, None if scores.count(None) == len(scores) else scores


def documents_of(context: Context, *, annotate: bool, stitch: bool | None = None) -> list[Document]:
    """The documents of a context, in order; without stitching and annotation, the original objects."""
    if context.options.stitch if stitch is None else stitch:
        return RankedList(map(_document_of, context.passages), [first_of(passage) for passage in context.passages])
    if not annotate:
        return RankedList((chunk.origin for chunk in context.kept), context.kept)
    annotated = (
        chunk.origin.model_copy(update={"metadata": {**chunk.origin.metadata, METADATA_KEY: chunk_to_dict(chunk)}})
        for chunk in context.kept
    )
    return RankedList(annotated, context.kept)


def _document_of(passage: Passage) -> Document:
    """Create one document for a passage, with the common metadata of its chunks."""
    span = span_of(passage)
    start = {} if span is None else {"start_index": span.start}
    metadata = {**common_metadata(passage.chunks), **start, METADATA_KEY: passage_to_dict(passage)}
    return Document(passage.text, metadata=metadata, id=passage.chunks[0].id if len(passage.chunks) == 1 else None)


def stamp_positions(
    documents: Iterable[Document],
    source: str | os.PathLike[str] | None = None,
    *,
    source_key: SourceKey | None = None,
) -> list[Document]:
    """Number the chunks of each source, so that their order is known in every store.

    Call it after the splitter, once, with all chunks of a source in source order. Numbers continue across the pages of
    a PDF that was loaded page by page. Each call starts at 0, so chunks of one source that were stamped in several
    calls cannot be ordered by their numbers: a loop over `lazy_load()` must first collect all pages of a file. If the
    page numbers of a source decrease, a warning is issued, and the chunks are numbered in the given order.

    Args:
        documents: The chunks of one or more sources, those of each source in order.
        source: Name of the source, for documents whose metadata contains none; it is stamped as `source`.
        source_key: See `oprag.ContextOptions.source_key`.

    Returns:
        Copies with two additional metadata keys: `chunk_index`, an integer that starts at 0 in each source, and
        `chunk_numbering`, a short hash of the texts that were numbered together.

    Raises:
        ChunkError: An item is not a `Document`.
        MissingSourceError: The source of a document is unknown, and `source` is not given.

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
