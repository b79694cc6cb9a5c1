"""What thresholds and neighbours need around LlamaIndex nodes: a model, a cache, a store, and a docstore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core import Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from oprag.assembly.neighbors import NeighborReader
from oprag.assembly.render import Show
from oprag.chunk import Chunk, Vector
from oprag.context import Context, ContextInputs, assemble_in_steps
from oprag.embedding.vectors import VectorSources
from oprag.errors import OptionError
from oprag.llama_index.around import neighbor_reader
from oprag.llama_index.embedder import as_embedder
from oprag.llama_index.nodes import chunks_of
from oprag.options import ContextOptions
from oprag.steps import Steps
from oprag.stores.adapter import adapter_of

if TYPE_CHECKING:
    from oprag.llama_index.index_fields import IndexFields

__all__ = ["Compression", "Searched", "check_compression", "compression_of", "model_of", "searched_by", "searched_in"]


class Searched(NamedTuple):
    """Where nodes were found.

    Attributes:
        vector_store: The vector store.
        nodes: The ids of nodes by the numbers of their vectors, for stores that number them.
        docstore: The nodes themselves.
        embed_model: What the nodes were embedded with.
        keywords: Keywords of the store's own search, among them a tenant or a shard.
    """

    vector_store: Any
    nodes: Mapping[str, str]
    docstore: Any
    embed_model: Any
    keywords: Mapping[str, Any]


@dataclass(frozen=True)
class Compression:
    """Where vectors and neighbours of nodes come from.

    Attributes:
        sources: Where vectors come from.
        reads_the_query: Whether the vector of a query that was searched for is one of the same model.
        read_neighbors: Gives the nodes around one.
    """

    sources: VectorSources
    reads_the_query: bool
    read_neighbors: NeighborReader | None

    def prepared(
        self, query: QueryBundle, retriever: BaseRetriever, context_options: ContextOptions
    ) -> Steps[QueryBundle]:
        """The query with its vector, where the retriever will search by it: so it is embedded once."""
        takes_it = isinstance(retriever, VectorIndexRetriever) and self.reads_the_query
        if context_options.needs_vectors and takes_it and query.embedding is None:
            vector = yield from self._vector(query)
            return replace(query, embedding=[float(number) for number in vector])
        return query

    def context(
        self,
        nodes: list[NodeWithScore],
        query: QueryBundle | None,
        context_options: ContextOptions,
        show: Show | None = None,
    ) -> Steps[Context]:
        """The context of nodes that were found, best first."""
        given = ContextInputs(chunks_of(nodes), None, self.read_neighbors, show)
        if context_options.needs_vectors and given.chunks:
            # NumPy is loaded only for who wants thresholds.
            from oprag.embedding.vectors import given_with_vectors

            if context_options.similarity_threshold is not None:
                if query is None:
                    raise OptionError("similarity_threshold needs the query; give query_bundle= or query_str=", None)
                given = replace(given, question_vector=(yield from self._vector(query)))
            given = yield from given_with_vectors(given, "", context_options, self.sources)
        return (yield from assemble_in_steps(given, context_options))

    def _vector(self, query: QueryBundle) -> Steps[Vector]:
        """The vector of a query; where it was expanded to several texts, their mean, as the retriever has it."""
        import numpy as np

        from oprag.embedding.vectors import question_vector

        if query.embedding is not None and self.reads_the_query:
            return np.asarray(query.embedding, dtype=np.float32)
        if not any(text.strip() for text in query.embedding_strs):
            raise OptionError("similarity_threshold needs a query with words, or with a vector", query)
        vectors = []
        for text in query.embedding_strs:
            vectors.append((yield from question_vector(text, self.sources)))  # noqa: PERF401 - yields
        return vectors[0] if len(vectors) == 1 else np.mean(vectors, axis=0, dtype=np.float32)


def compression_of(
    context_options: ContextOptions, parts: IndexFields, searched: Searched | None, retriever: BaseRetriever | None
) -> Compression:
    """Where vectors and neighbours of nodes come from, as far as they are needed.

    Args:
        context_options: The options.
        parts: The embedding model, the cache and what reads neighbours, as they were given.
        searched: Where nodes were found, if that is known.
        retriever: What finds them, if that is known: neighbours pass its filter.

    Raises:
        OptionError: One of the parts is something else, or the cache is a file and the model does not say which one it
            is.
    """
    docstore = None if searched is None else searched.docstore
    given = neighbor_reader(parts.read_neighbors, docstore, retriever)
    reader = given if context_options.neighbors else None
    if not context_options.needs_vectors:
        return Compression(VectorSources(), reads_the_query=False, read_neighbors=reader)
    own = None if searched is None else searched.embed_model
    used = model_of(parts.embed_model, searched)
    embedder = None if used is None else as_embedder(used)
    cache = parts.cache_for(embedder)
    same = embedder is not None and own is not None and (used is own or as_embedder(own).name == embedder.name)
    store = None
    if searched is not None and same:
        store = adapter_of(searched.vector_store, searched.keywords, searched.nodes, searched.docstore)
    sources = VectorSources(embedder, cache, store, _embedded_text, "embed_model")
    return Compression(sources, same, reader)


def model_of(given: Any, searched: Searched | None) -> Any:
    """The embedding model that was given, else that of the index, else that of `Settings` if one was set."""
    if given is not None:
        return given
    if searched is not None and searched.embed_model is not None:
        return searched.embed_model
    # Asked for a model that nobody set, Settings would load that of OpenAI.
    return None if Settings._embed_model is None else Settings.embed_model  # noqa: SLF001


def check_compression(compression: Compression, context_options: ContextOptions) -> None:
    """Refuse thresholds and neighbours for which nothing is at hand, before the first query.

    Raises:
        OptionError: There is nothing that makes vectors, or nothing to read neighbours from.
    """
    if context_options.needs_vectors and compression.sources.embedder is None:
        raise OptionError("thresholds need vectors, and nothing makes them here; give embed_model=", None)
    if context_options.neighbors and compression.read_neighbors is None:
        raise OptionError(
            "neighbors needs read_neighbors=, a docstore or a function that returns the nodes around one. The docstore "
            "of the index is read by default only around a VectorIndexRetriever without vector_store_kwargs, since "
            "neighbors must pass the filter of the search; where all nodes may be shown, give "
            "read_neighbors=index.docstore",
            context_options.neighbors,
        )


def searched_by(retriever: BaseRetriever) -> Searched | None:
    """Where a retriever searches; None where that is not certain."""
    if not isinstance(retriever, VectorIndexRetriever):
        return None
    index = retriever._index  # noqa: SLF001 - a retriever says nowhere else what it searches
    return Searched(
        retriever._vector_store,  # noqa: SLF001
        index.index_struct.nodes_dict,
        retriever._docstore,  # noqa: SLF001
        retriever._embed_model,  # noqa: SLF001
        retriever._kwargs,  # noqa: SLF001
    )


def searched_in(index: Any) -> Searched:
    """What an index searches.

    Raises:
        OptionError: It is no vector store index.
    """
    try:
        return Searched(
            index.vector_store,
            index.index_struct.nodes_dict,
            index.docstore,
            index._embed_model,  # noqa: SLF001
            {},
        )
    except AttributeError as error:
        raise OptionError(f"index must be a VectorStoreIndex, got {type(index).__name__}", index) from error


def _embedded_text(chunk: Chunk) -> str:
    """What LlamaIndex embeds of a node: its text with its metadata."""
    text: str = chunk.origin.node.get_content(MetadataMode.EMBED)
    return text
