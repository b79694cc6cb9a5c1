"""Reads files, builds their index and searches it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from oprag.cli.index_cache import cached_index, cached_pages, clear_cache, index_key
from oprag.cli.options import Indexing
from oprag.cli.progress import LateProgress
from oprag.compare.providers.provider_embedder import embedder_of
from oprag.context import Context, ContextInputs, assemble
from oprag.embedding.static import LocalEmbedder, local_embedder
from oprag.embedding.vectors import VectorSources, given_with_vectors
from oprag.errors import InputFileError
from oprag.files.pdf import is_pdf, pdf_pages
from oprag.files.reading import file_text
from oprag.index.document_index import DocumentIndex
from oprag.options import ContextOptions
from oprag.steps import run_sync

__all__ = ["STDIN", "Sources", "context_of", "index_sources", "read_sources"]

STDIN = "<stdin>"

Sources = Mapping[str, str | list[str]]
"""Maps the name of each source to its text, or to its pages."""


def read_sources(files: Sequence[str], indexing: Indexing) -> Sources:
    """Read the text (or the pages) of each file; duplicate names are read once.

    Line endings of text files are preserved, so that character offsets are those of the file (counted after a
    byte-order mark).
    """
    cache = None if indexing.index_cache is None else Path(indexing.index_cache)
    if cache is not None and indexing.clear_index_cache:
        clear_cache(cache)
    return {STDIN if name == "-" else name: _content(name, cache) for name in dict.fromkeys(files)}


def _content(name: str, cache: Path | None) -> str | list[str]:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputFileError(f"cannot read {name}: {reason}", name) from error
    if not is_pdf(name, data):
        return file_text(name, data)
    read = partial(pdf_pages, name, data, "cli")
    return read() if cache is None else cached_pages(cache, data, read)


def index_sources(sources: Sources, indexing: Indexing) -> DocumentIndex:
    """Build an index over these texts, or read it from the cache."""
    embedder = embedder_of(indexing.embeddings) if indexing.needs_vectors else None

    def make() -> DocumentIndex:
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

    if indexing.index_cache is None:
        return make()
    name = None if embedder is None else embedder.name
    key = index_key(sources, indexing.split, LocalEmbedder.name, name)
    return cached_index(Path(indexing.index_cache), key, sources, embedder, make)


def context_of(
    question: str, sources: Sources, context_options: ContextOptions, indexing: Indexing, *, beyond: bool = False
) -> Context:
    """Build the context for a question over these texts.

    With `beyond`, retrieves twice as many candidates. This keeps the same chunks, but the context also lists near
    misses: the second half, dropped by `max_candidates`.
    """
    index = index_sources(sources, indexing)
    candidates = context_options.candidates or len(index)
    hits = index.search(question, 2 * candidates if beyond else candidates, indexing.search)
    if beyond:
        context_options = replace(context_options, max_candidates=candidates)
    vector = index.question_vector(question) if index.embedder is not None else None
    given = ContextInputs(hits, vector, index.neighbors)
    if index.embedder is None and context_options.needs_vectors:
        # After a bm25 search, thresholds need cosines: embed the hits, not the whole document.
        embedder = VectorSources(embedder_of(indexing.embeddings))
        given = run_sync(given_with_vectors(given, question, context_options, embedder))
    return assemble(given, context_options)
