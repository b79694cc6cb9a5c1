"""Documents as chunks, and chunks and passages as documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from oprag.assembly.select import warn_about_few
from oprag.chunk import Chunk, chunk_to_dict
from oprag.context import Context
from oprag.context_report import METADATA_KEY, common_metadata, passage_to_dict
from oprag.errors import ChunkError
from oprag.options import ContextOptions
from oprag.positions.values import finite

__all__ = ["chunks_of", "documents_of", "found_chunks"]


def chunks_of(documents: Any, scores: Sequence[float | None] | None = None) -> list[Chunk]:
    """Documents, best first, as chunks; their ranks are their places in the list.

    Args:
        documents: An iterable of `Document`, as a retriever gave it.
        scores: The score of each, where the search gave them.

    Raises:
        ChunkError: Something is no `Document`, or its text is no string.
    """
    if isinstance(documents, str) or not isinstance(documents, Iterable):
        raise ChunkError(f"expected a list of LangChain documents, got {type(documents).__name__}", documents)
    chunks: list[Chunk] = []
    for rank, document in enumerate(documents):
        if not isinstance(document, Document):
            raise ChunkError(f"expected LangChain documents, got {type(document).__name__} at place {rank}", document)
        score = scores[rank] if scores is not None else _reranked(document)
        chunks.append(
            Chunk(document.page_content, rank, metadata=document.metadata, score=score, id=document.id, origin=document)
        )
    return chunks


def found_chunks(found: Any, context_options: ContextOptions, *, wraps: bool) -> list[Chunk]:
    """What a search brought, as chunks.

    Args:
        found: Documents, and their scores where the search gave them.
        context_options: The options.
        wraps: Whether a retriever brought it, which decides itself how much it searches for.

    Raises:
        ChunkError: It is no list of documents.
    """
    documents, scores = found
    if not isinstance(documents, list | tuple):
        raise ChunkError(
            f"the wrapped retriever must give a list of documents, got {type(documents).__name__}", documents
        )
    chunks = chunks_of(documents, scores)
    if wraps:
        warn_about_few(chunks, context_options.k)
    return chunks


def _reranked(document: Document) -> float | None:
    """The score that LangChain's rerankers leave in the metadata."""
    metadata: Any = document.metadata
    known = type(metadata) is dict or isinstance(metadata, Mapping)
    return finite(metadata.get("relevance_score")) if known else None


def documents_of(context: Context, *, annotate: bool, stitch: bool | None = None) -> list[Document]:
    """The documents of a context, in order.

    Without stitching and annotation these are the documents that were given, the same objects.

    Args:
        context: The context.
        annotate: Whether to give copies that say how they were placed.
        stitch: Whether to give one document a passage; as the context was made by default.
    """
    if context.options.stitch if stitch is None else stitch:
        return [
            Document(
                passage.text,
                metadata={**common_metadata(passage.chunks), METADATA_KEY: passage_to_dict(passage)},
                id=passage.chunks[0].id if len(passage.chunks) == 1 else None,
            )
            for passage in context.passages
        ]
    if annotate:
        return [_annotated(chunk) for chunk in context.kept]
    return [chunk.origin for chunk in context.kept]


def _annotated(chunk: Chunk) -> Document:
    document: Document = chunk.origin
    about: dict[str, Any] = chunk_to_dict(chunk)
    return document.model_copy(update={"metadata": {**document.metadata, METADATA_KEY: about}})
