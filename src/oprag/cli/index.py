"""Reads files, builds their index and makes a retriever for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oprag.cli.options import Indexing
from oprag.cli.progress import LateProgress
from oprag.compare.providers.embedder import embedder_of
from oprag.embedding.embedder import DualEncoder
from oprag.embedding.static import local_embedder
from oprag.errors import InputFileError
from oprag.files.pdf import is_pdf, pdf_pages
from oprag.files.reading import file_text
from oprag.index.document_index import DocumentIndex
from oprag.options import ContextOptions

if TYPE_CHECKING:
    from oprag.langchain.retriever import OrderPreservingRetriever

__all__ = ["STDIN", "Sources", "embeddings_of", "index_sources", "read_sources", "retriever_of"]

STDIN = "<stdin>"

Sources = Mapping[str, str | list[str]]
"""Maps the name of each source to its text, or to its pages."""


def read_sources(files: Sequence[str]) -> Sources:
    """Read the text (or the pages) of each file; duplicate names are read once.

    Line endings of text files are preserved, so that character offsets are those of the file (counted after a
    byte-order mark).
    """
    return {STDIN if name == "-" else name: _content(name) for name in dict.fromkeys(files)}


def _content(name: str) -> str | list[str]:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputFileError(f"cannot read {name}: {reason}", name) from error
    return pdf_pages(name, data, "cli") if is_pdf(name, data) else file_text(name, data)


def index_sources(sources: Sources, indexing: Indexing) -> DocumentIndex:
    """Build an index over these texts."""
    embedder = None if indexing.search == "bm25" else embedder_of(indexing.embeddings)
    with LateProgress("embedding", "chunks") as progress:
        return DocumentIndex.from_texts(
            sources,
            embedder,
            local_embedder().tokenizer,
            splitter=indexing.splitter,
            chunk_size=indexing.chunk_size,
            chunk_overlap=indexing.chunk_overlap,
            on_progress=progress.update,
        )


def embeddings_of(indexing: Indexing) -> DualEncoder:
    """Return the embedder, loaded when it first embeds something."""
    name = indexing.embeddings
    return DualEncoder(
        name,
        lambda texts: embedder_of(name).embed_questions(texts),
        lambda texts: embedder_of(name).embed_documents(texts),
    )


def retriever_of(index: DocumentIndex, options: ContextOptions, indexing: Indexing) -> OrderPreservingRetriever:
    """Return a retriever that searches the index and makes contexts with these options."""
    from oprag.langchain import DocumentIndexRetriever, OrderPreservingRetriever

    candidates = min(options.candidates or len(index), len(index))
    # Without a k that changes nothing, there is no warning that the search found fewer chunks.
    k = None if (options.k or 0) >= candidates else options.k
    return OrderPreservingRetriever(
        retriever=DocumentIndexRetriever(index=index, k=max(candidates, 1), search=indexing.search),
        # An index for bm25 has no embedder, but thresholds need cosines.
        embeddings=embeddings_of(indexing) if index.embedder is None else None,
        **{**vars(options), "k": k, "stitch": False},
    )
