"""The sources of vectors and neighbors: those given as options, or the searched index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from llama_index.core import MockEmbedding, Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from pydantic import SkipValidation, ValidationInfo, field_validator, model_validator

from oprag._internal.masking import describe, masked_error
from oprag._internal.sync_async import Step, Steps
from oprag.adapters.fields import ContextFields, SourceFields, StoreOrderFields, component
from oprag.chunk import Chunk, Vector, by_rank
from oprag.context import Context, ContextInputs, assemble_in_steps
from oprag.errors import OptionError
from oprag.llama_index.embeddings import as_embedder
from oprag.llama_index.hierarchy import LevelsInDocstore, with_absolute_spans
from oprag.llama_index.nodes import chunks_of, shown_nodes
from oprag.llama_index.wrapped import Searched, docstores_in, searched_by, searched_in, store_of, wrapped_in
from oprag.options import ContextOptions, refuse_filter
from oprag.pipeline.neighbors import NeighborReader
from oprag.pipeline.select import warn_about_few
from oprag.positions.retrieved import SearchedStore
from oprag.stores.adapter import StoreAdapter, StoredChunk, adapter_of
from oprag.stores.listing import can_list, searched_store
from oprag.stores.llama_index_chunks import chunk_of
from oprag.stores.stored_neighbors import StoredNeighbors

if TYPE_CHECKING:
    from oprag.stores.vectors import VectorSources

__all__ = ["IndexFields", "chunk_of_stored", "neighbor_reader", "refuse_reordered"]

_Passes = Callable[[BaseNode], bool]
_NEGATIVE = (FilterOperator.NE, FilterOperator.NIN)
# Why functions that require the filter of the search are rejected.
_NO_FILTER = "LlamaIndex queries do not contain a filter"


class IndexFields(SourceFields, StoreOrderFields, ContextFields):
    """The options of `ContextOptions`, and those for vectors, neighbors and positions; an invalid value is not kept."""

    index: SkipValidation[Any] = component(
        "Index of the nodes: its vectors and embedding model are for thresholds, its store for order and neighbors."
    )
    embed_model: SkipValidation[Any] = component(
        "LlamaIndex embedding model, or an oprag.Embedder, for thresholds, reciprocal and "
        'rank_by="cosine"; by default that of the index, else Settings.embed_model if you set it.'
    )

    read_neighbors: BaseDocumentStore | BaseIndex[Any] | Callable[..., Any] | None = component(
        "An index, a docstore, or a function of a node and a number; by default the searched index."
    )

    @field_validator("read_source", "read_neighbors", mode="before")
    @classmethod
    def _refuse_filter(cls, value: Any, field: ValidationInfo) -> Any:
        refuse_filter(str(field.field_name), value, _NO_FILTER)
        return value

    @field_validator("index", mode="before")
    @classmethod
    def _check_index(cls, value: Any) -> Any:
        if value is not None:
            searched_in(value)
        return value

    @field_validator("embed_model", mode="before")
    @classmethod
    def _check_embed_model(cls, value: Any) -> Any:
        if value is not None:
            as_embedder(value)
        return value

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        self._check()
        return self

    def _check(self) -> None:
        """Reject thresholds without a source of vectors, and `neighbors` without a reader."""
        options = self._context_options
        sources = self._sources(options)
        if sources is not None:
            sources.vectors.check(options)
        if sources is not None and options.reads_around and sources.read_neighbors is None:
            raise OptionError(
                f"{options.reads_around} requires read_neighbors; pass read_neighbors=..., an index, a docstore "
                "or a function that returns the nodes around one. By default, the index is read only with a "
                "VectorIndexRetriever whose filter and vector_store_kwargs oprag can apply, because neighbors must "
                "pass the filter of the search; if all nodes may be shown, set read_neighbors=index",
                options.neighbors,
            )

    @property
    def _searched(self) -> BaseRetriever | None:
        """The retriever of the nodes; None for a postprocessor."""
        return getattr(self, "retriever", None)

    def _found(
        self,
        query: QueryBundle,
        options: ContextOptions,
        postprocessors: Sequence[BaseNodePostprocessor] = (),
        *,
        as_nodes: bool = False,
    ) -> Steps[Context]:
        """Search for a query, and build the context of its nodes."""
        search, sources = self._searched, self._sources(options)
        assert search is not None  # noqa: S101 - only a postprocessor has none, and it does not search
        if sources is not None:
            query = yield from sources.with_vector(query)
        nodes = yield Step(lambda: search.retrieve(query), lambda: search.aretrieve(query))
        warn_about_few(nodes, options.k)
        for one in postprocessors:
            nodes = yield Step(
                partial(one.postprocess_nodes, nodes, query_bundle=query),
                partial(one.apostprocess_nodes, nodes, query_bundle=query),
            )
        return (yield from self._context(nodes, query, options, sources, as_nodes=as_nodes))

    def _context(
        self,
        nodes: list[NodeWithScore],
        query: QueryBundle | None,
        options: ContextOptions,
        sources: NodeSources | None,
        *,
        as_nodes: bool = False,
    ) -> Steps[Context]:
        """Build the context of nodes."""
        show = partial(shown_nodes, stitched=options.stitch) if as_nodes else None
        inputs = ContextInputs(by_rank(chunks_of(nodes), nodes), show=show)
        if sources is not None:
            inputs = yield from sources.complete(inputs, query, options)
        inputs = yield from self._find_positions(inputs, options)
        return (yield from assemble_in_steps(inputs, options))

    def _sources(self, options: ContextOptions) -> NodeSources | None:
        """The sources of vectors and neighbors; None if the options need neither."""
        if not (options.needs_vectors or options.reads_sources):
            return None
        # Imports NumPy.
        from oprag.stores.vectors import VectorSources

        searched = self._where()
        reader = self._neighbor_reader(options) if options.reads_sources else None
        if not options.needs_vectors:
            return NodeSources(VectorSources(), reader)
        used = self._model()
        embedder = None if used is None else as_embedder(used)
        # Without any model, the vectors of the store can be used.
        own = searched if searched is not None and used is searched.embed_model else None
        store = None
        if own is not None and own.vector_store is not None:
            store = adapter_of(own.vector_store, own.keywords, own.nodes, own.docstore)
        # LlamaIndex embeds a text with its metadata.
        embedded = lambda chunk: chunk.origin.node.get_content(MetadataMode.EMBED)  # noqa: E731
        vectors = VectorSources(embedder, self.vector_cache, store, embedded, "embed_model")
        shared = own is not None and embedder is not None
        return NodeSources(vectors, reader, shared, shared and isinstance(self._searched, VectorIndexRetriever))

    def _find_positions(self, inputs: ContextInputs, options: ContextOptions) -> Steps[ContextInputs]:
        """Add positions from the text of the source and from the store to chunks without one in their metadata."""
        docstores = list[BaseDocumentStore]()
        inputs = replace(inputs, store=self._searched_store, place_each=self._place_each)
        if any(chunk.parent_id is not None for chunk in inputs.chunks):
            given = [] if self.index is None else [searched_in(self.index).docstore]
            docstores = [*given, *docstores_in(self._searched)]
            chunks = yield Step(lambda: with_absolute_spans(inputs.chunks, docstores))
            inputs = replace(inputs, chunks=chunks, placed={})
        if inputs.undecided(options):
            stores: list[StoreAdapter] = []
            if self.store_order and self._searches():
                stores = [*self._searched_stores(), *map(LevelsInDocstore, docstores)]
            inputs = yield from self._orders.complete(inputs, options, stores, self._source_texts)
        if docstores and (read := inputs.read_neighbors) is not None:
            spanned = lambda chunk, number: with_absolute_spans(list(read(chunk, number)), docstores)  # noqa: E731
            inputs = replace(inputs, read_neighbors=spanned)
        return inputs

    def _neighbor_reader(self, options: ContextOptions) -> NeighborReader | None:
        """The reader of neighbors; None if it might read chunks that the search excludes."""
        given = self.read_neighbors
        if given is not None and not isinstance(given, BaseIndex):
            return neighbor_reader(given, self._searched)
        store = self._store_of_neighbors()
        if store is None or not can_list(store):
            return None
        return StoredNeighbors(store, options, chunk_of_stored, self.store_order)

    def _store_of_neighbors(self) -> StoreAdapter | None:
        """The searched store with all restrictions of the search; None if these are not known."""
        # Not `isinstance`: a subclass may search differently.
        known = type(self._searched) is VectorIndexRetriever and searched_by(self._searched)
        readable = self._where() if known else None
        if isinstance(self.read_neighbors, BaseIndex):
            readable = searched_in(self.read_neighbors, self._searched if known else None)
        # The filter of a vector search cannot be applied to a docstore that is listed.
        if readable is None or (readable.vector_store is None and readable.restrictions):
            return None
        return store_of(readable, ("filters", "node_ids", "doc_ids"))

    def _searches(self) -> list[Searched]:
        """The searched components: those of the given index, else of the retriever; empty if unknown."""
        return searched_by(self._searched) if self.index is None else [searched_in(self.index, self._searched)]

    def _searched_stores(self) -> list[StoreAdapter]:
        """The adapters of the searched stores."""
        return [adapter for one in self._searches() if (adapter := store_of(one)) is not None]

    def _searched_store(self) -> SearchedStore:
        """What was searched, for warnings."""
        option = "position_key" if self._searches() else "index"
        return searched_store(self._searched_stores(), "check_positions(index)", option)

    def _model(self) -> Any:
        """The embedding model that was given, else that of the index, else that of `Settings` if one was set."""
        if self.embed_model is not None:
            return self.embed_model
        searched = self._where()
        if searched is not None and searched.embed_model is not None:
            return searched.embed_model
        # If no model was set, `Settings.embed_model` would load OpenAI's; if it was set to None, it is a mock.
        configured = Settings._embed_model  # noqa: SLF001
        return None if configured is None or type(configured) is MockEmbedding else Settings.embed_model

    def _where(self) -> Searched | None:
        """The first of the searched components; None if unknown."""
        return next(iter(self._searches()), None)


@dataclass(frozen=True)
class NodeSources:
    """The sources of vectors and neighbors for nodes."""

    vectors: VectorSources
    read_neighbors: NeighborReader | None
    same_model: bool = False  # whether the vector of a query in the search comes from the same model
    search_by_vector: bool = False  # whether the retriever can search by such a vector

    def with_vector(self, query: QueryBundle) -> Steps[QueryBundle]:
        """Add the vector to a query if the retriever searches by it, so that it is embedded only once."""
        if not self.search_by_vector:
            return query
        vector = yield from self._vector(query)
        return replace(query, embedding=[float(number) for number in vector])

    def complete(
        self, inputs: ContextInputs, query: QueryBundle | None, options: ContextOptions
    ) -> Steps[ContextInputs]:
        """Add the vectors and the reader of neighbors that these options need to the inputs of a context."""
        inputs = replace(inputs, read_neighbors=self.read_neighbors)
        if not options.needs_vectors:
            return inputs
        from oprag.stores.vectors import given_with_vectors

        if options.similarity_threshold is not None:
            if query is None:
                raise OptionError(
                    "similarity_threshold requires the query; pass query_bundle=... or query_str=...", None
                )
            inputs = replace(inputs, question_vector=(yield from self._vector(query)))
        return (yield from given_with_vectors(inputs, "", options, self.vectors))

    def _vector(self, query: QueryBundle) -> Steps[Vector]:
        """The vector of a query; if it was expanded to several texts, their mean, as in the retriever."""
        import numpy as np

        from oprag.stores.vectors import question_vector

        if query.embedding is not None and self.same_model:
            return np.asarray(query.embedding, dtype=np.float32)
        if not any(text.strip() for text in query.embedding_strs):
            raise OptionError("similarity_threshold requires a query with a text or a vector; both are empty", query)
        vectors = []
        for text in query.embedding_strs:
            vectors.append((yield from question_vector(text, self.vectors)))  # noqa: PERF401 - yields
        return vectors[0] if len(vectors) == 1 else np.mean(vectors, axis=0, dtype=np.float32)


def refuse_reordered(retriever: Any) -> None:
    """Reject a retriever that wraps or fuses one that returns nodes in another order than by rank."""
    if isinstance(retriever, ContextFields) and retriever.order != "rank":
        raise OptionError(
            f"the wrapped retriever already puts nodes in another order ({type(retriever).__name__}), so their index "
            "is no longer their rank; the order must come last and only once: wrap the retriever without it, and set "
            "its options here",
            retriever,
        )
    for inner in wrapped_in(retriever):
        if isinstance(inner, BaseRetriever):
            refuse_reordered(inner)


def neighbor_reader(source: Any, retriever: BaseRetriever | None) -> NeighborReader:
    """A function that reads neighbors by a function of the user, or in a docstore under the filter of the search."""
    if isinstance(source, BaseDocumentStore):
        source = partial(_linked, source, _filter_of(retriever))

    def read(chunk: Chunk, number: int) -> list[Chunk]:
        nodes = source(chunk.origin.node, number)
        return chunks_of([NodeWithScore(node=node) if isinstance(node, BaseNode) else node for node in nodes])

    return read


def chunk_of_stored(stored: StoredChunk, rank: int) -> Chunk:
    """Convert a stored node to a chunk."""
    return chunk_of(stored.node, rank, origin=NodeWithScore(node=stored.node))


def _linked(docstore: BaseDocumentStore, passes: _Passes | None, node: BaseNode, number: int) -> list[BaseNode]:
    """The neighbors of a node, by the PREVIOUS and NEXT links of a docstore."""
    before = list(_follow(docstore, passes, node, NodeRelationship.PREVIOUS, number))
    # Read the node itself, too: a postprocessor may have replaced a sentence with its window.
    original = docstore.get_document(node.node_id, raise_error=False)
    after = _follow(docstore, passes, node, NodeRelationship.NEXT, number)
    return [*reversed(before), *([] if original is None else [original]), *after]


def _follow(
    docstore: BaseDocumentStore, passes: _Passes | None, node: BaseNode, relation: NodeRelationship, number: int
) -> Iterator[BaseNode]:
    """The nodes in one direction, up to the first one that the search excludes."""
    source = node.ref_doc_id
    for _ in range(number):
        related = node.relationships.get(relation)
        if not isinstance(related, RelatedNodeInfo):
            return
        found = docstore.get_document(related.node_id, raise_error=False)
        if found is None and docstore.document_exists(node.node_id):
            # The linked node was deleted, or removed before indexing.
            return
        if found is None:
            raise OptionError(
                f"the docstore does not contain node {describe(related.node_id)}, which is linked as the "
                f"{relation.name.lower()} node of {describe(node.node_id)}; the docstore of an index over a store with "
                "texts is empty unless store_nodes_override=True: use read_neighbors=index instead",
                related.node_id,
            )
        # Some splitters link the last node of a document to the first node of the next document.
        if found.ref_doc_id != source or (passes is not None and not passes(found)):
            return
        node = found
        yield node


def _filter_of(retriever: BaseRetriever | None) -> _Passes | None:
    """A function that tells whether a node passes the filters of a retriever; None if they cannot be determined."""
    # A subclass may search differently.
    searched = searched_by(retriever) if type(retriever) is VectorIndexRetriever else []
    if not searched:
        return None
    # Neighbors are of the same document, so `doc_ids` excludes none.
    filters, ids = (searched[0].restrictions.get(name) for name in ("filters", "node_ids"))

    def passes(node: BaseNode) -> bool:
        # The metadata that LlamaIndex writes to a store.
        stored = {**node.metadata, **dict.fromkeys(("document_id", "doc_id", "ref_doc_id"), node.ref_doc_id)}
        # No ids for an index over a store with texts, since LlamaIndex then does not list them.
        return (not ids or node.node_id in ids) and (filters is None or _matches(filters, stored))

    return passes


def _matches(filters: MetadataFilters, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata matches a filter; a missing value never passes a negative condition, as stores differ there."""
    is_not = filters.condition is FilterCondition.NOT
    for one in filters.filters:
        if isinstance(one, MetadataFilter) and metadata.get(one.key) is None and (is_not or one.operator in _NEGATIVE):
            return False
    try:
        return build_metadata_filter_fn(lambda _: metadata, filters)("")
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"the filter of the search cannot be applied to neighbors ({masked_error(error)}); set read_neighbors= to "
            "an index, or to a function that returns the nodes around one",
            filters,
        ) from error
