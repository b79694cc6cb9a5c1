"""Splitting and embedding for the command line, with a progress bar when it takes long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from oprag.cli.index_cache import cached_index, index_key
from oprag.cli.indexing import Indexing
from oprag.cli.late_progress import LateProgress
from oprag.cli.reading import Sources
from oprag.compare.providers.provider_embedder import embedder_of
from oprag.context import Context, ContextInputs, assemble
from oprag.embedding.static import LocalEmbedder, local_embedder
from oprag.embedding.vectors import VectorSources, given_with_vectors
from oprag.index.document_index import DocumentIndex
from oprag.options import ContextOptions
from oprag.steps import run_sync

__all__ = ["context_of", "index_sources"]


def index_sources(sources: Sources, indexing: Indexing) -> DocumentIndex:
    """An index over these texts.

    Args:
        sources: The texts, or pages, by their names.
        indexing: How they are split and embedded, and where the index is kept.

    Raises:
        MissingExtraError: What embeds or splits is not installed.
        OptionError: They cannot be split so, or there are no such embeddings.
        EmbeddingError: The embeddings failed.
    """
    embedder = embedder_of(indexing.embeddings) if indexing.needs_vectors else None

    def make() -> DocumentIndex:
        with LateProgress("embedding", "chunks") as progress:
            return DocumentIndex.from_texts(
                sources,
                embedder,
                local_embedder().tokenizer,
                splitter=indexing.splitter,
                size=indexing.chunk_size,
                overlap=indexing.chunk_overlap,
                progress=progress.update,
            )

    if indexing.index_cache is None:
        return make()
    name = None if embedder is None else embedder.name
    key = index_key(sources, indexing.split, LocalEmbedder.name, name)
    return cached_index(Path(indexing.index_cache), key, sources, embedder, make)


def context_of(
    question: str, sources: Sources, context_options: ContextOptions, indexing: Indexing, *, beyond: bool = False
) -> Context:
    """The context of a question over these texts.

    Args:
        question: The question.
        sources: The texts, or pages, by their names.
        context_options: How the context is made.
        indexing: How the texts are split and searched.
        beyond: Retrieve twice as many candidates as are considered. Nothing more is kept; those behind the first half
            are dropped by `max_candidates`, so that near misses are known too.

    Raises:
        OpragError: What `index_sources`, `given_with_vectors` and `build_context` raise.
    """
    index = index_sources(sources, indexing)
    candidates = context_options.max_candidates or context_options.k or len(index)
    hits = index.search(question, 2 * candidates if beyond else candidates, indexing.search)
    if beyond:
        context_options = replace(context_options, max_candidates=candidates)
    vector = index.question_vector(question) if index.embedder is not None else None
    given = ContextInputs(hits, vector, index.neighbors)
    if index.embedder is None and context_options.needs_vectors:
        # What was found by its words: a threshold is a cosine, but the whole document need not be embedded for it.
        embedder = VectorSources(embedder_of(indexing.embeddings))
        given = run_sync(given_with_vectors(given, question, context_options, embedder))
    return assemble(given, context_options)
