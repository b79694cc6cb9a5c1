"""Read neighbors of a node: from a docstore or a store, with the filter of the search, or with a function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from oprag._internal.masking import describe
from oprag.adapters.fields import list_of_neighbors
from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.llama_index.nodes import chunk_of, chunks_of
from oprag.llama_index.wrapped import searched_by
from oprag.options import ContextOptions
from oprag.pipeline.neighbors import NeighborReader
from oprag.stores.adapter import StoreAdapter, StoredChunk
from oprag.stores.listing import can_list
from oprag.stores.orders import PlacesOfSource
from oprag.stores.stored_neighbors import StoredNeighbors

__all__ = ["NO_FILTER", "chunk_of_stored", "in_documents", "neighbor_reader", "store_reader"]

Passes = Callable[[BaseNode], bool]


NO_FILTER = "LlamaIndex queries do not contain a filter"
"""Why functions that require the filter of the search are rejected."""


def neighbor_reader(
    source: Any,
    docstore: BaseDocumentStore | None,
    retriever: BaseRetriever | None,
    listed: NeighborReader | None = None,
) -> NeighborReader | None:
    """A function that reads the neighbors of a chunk; None if neighbors cannot be read.

    The filter of the search is applied to nodes of a docstore if it is known. If not, a docstore is read only if it was
    passed as `source`.

    Args:
        source: The value of `read_neighbors`: a docstore or a function.
        docstore: The docstore of the index, used if `source` is None.
        retriever: The retriever that searched.
        listed: Reads neighbors from the store, for nodes whose links are not in the docstore.
    """
    if source is not None and not isinstance(source, BaseDocumentStore):
        return partial(_as_chunks, source)
    passes = _filter_of(retriever)
    linked = docstore if source is None and passes is not None else source
    if linked is None:
        return listed
    by_links = partial(_as_chunks, partial(_linked, linked, passes))
    if listed is None:
        return by_links
    return _LinkedOrListed(linked, by_links, listed)


class _LinkedOrListed:
    """Reads the neighbors of a chunk by its links in a docstore, or from the store if it has no links."""

    def __init__(self, docstore: BaseDocumentStore, by_links: NeighborReader, listed: NeighborReader) -> None:
        self._docstore = docstore
        self._by_links = by_links
        self._listed = listed

    def __call__(self, chunk: Chunk, number: int) -> Iterable[Chunk]:
        return (self._by_links if _has_links(self._docstore, chunk) else self._listed)(chunk, number)

    def with_places(self, place_of: PlacesOfSource) -> NeighborReader:
        """See `StoredNeighbors.with_places`."""
        with_places = getattr(self._listed, "with_places", None)
        listed = self._listed if with_places is None else with_places(place_of)
        return _LinkedOrListed(self._docstore, self._by_links, listed)


def _as_chunks(read: Callable[[BaseNode, int], Any], chunk: Chunk, number: int) -> list[Chunk]:
    nodes = list_of_neighbors(read(chunk.origin.node, number), "nodes", chunk)
    return chunks_of([NodeWithScore(node=node) if isinstance(node, BaseNode) else node for node in nodes])


def _has_links(docstore: BaseDocumentStore, chunk: Chunk) -> bool:
    node = docstore.get_document(chunk.origin.node.node_id, raise_error=False)
    return node is not None and not {NodeRelationship.PREVIOUS, NodeRelationship.NEXT}.isdisjoint(node.relationships)


def store_reader(
    store: StoreAdapter, documents: Collection[str] | None, options: ContextOptions, *, store_order: bool
) -> NeighborReader | None:
    """A function that reads the neighbors of a chunk from a store; None if the store cannot list its nodes.

    Args:
        store: The searched store, with its filter.
        documents: The ids of the documents that the search is restricted to.
        options: The options for sources and positions.
        store_order: Whether the insertion order of the store is used.
    """
    passes = partial(in_documents, documents)
    return StoredNeighbors(store, options, chunk_of_stored, store_order, passes) if can_list(store) else None


def chunk_of_stored(stored: StoredChunk, rank: int) -> Chunk:
    """Convert a stored node to a chunk."""
    return chunk_of(stored.node, rank, origin=NodeWithScore(node=stored.node))


def in_documents(documents: Collection[str] | None, stored: StoredChunk) -> bool:
    """Whether a stored node belongs to one of these documents."""
    return documents is None or stored.node.ref_doc_id in documents


def _linked(docstore: BaseDocumentStore, passes: Passes | None, node: BaseNode, number: int) -> list[BaseNode]:
    """The neighbors of a node, by the PREVIOUS and NEXT links of a docstore."""
    before = list(_follow(docstore, passes, node, NodeRelationship.PREVIOUS, number))
    # Read the node itself, too: a postprocessor may have replaced a sentence with its window.
    original = docstore.get_document(node.node_id, raise_error=False)
    after = _follow(docstore, passes, node, NodeRelationship.NEXT, number)
    return [*reversed(before), *([] if original is None else [original]), *after]


def _follow(
    docstore: BaseDocumentStore, passes: Passes | None, node: BaseNode, relation: NodeRelationship, number: int
) -> Iterator[BaseNode]:
    """The nodes in one direction, up to the first one that the search excludes."""
    source, seen = node.ref_doc_id, {node.node_id}
    for _ in range(number):
        related = node.relationships.get(relation)
        if not isinstance(related, RelatedNodeInfo) or related.node_id in seen:
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
        seen.add(found.node_id)
        node = found
        yield node


def _filter_of(retriever: BaseRetriever | None) -> Passes | None:
    """A function that tells whether a node passes the filters of a retriever; None if they cannot be determined."""
    # A subclass may search differently, and keywords for the store may contain a filter in the store's own syntax.
    searched = searched_by(retriever) if type(retriever) is VectorIndexRetriever else []
    if not searched or searched[0].keywords:
        return None
    filters, documents, ids = (searched[0].restrictions.get(name) for name in ("filters", "documents", "node_ids"))
    if filters is not None and not isinstance(filters, MetadataFilters):
        return None

    def passes(node: BaseNode) -> bool:
        # The metadata that LlamaIndex writes to a store.
        stored = {**node.metadata, **dict.fromkeys(("document_id", "doc_id", "ref_doc_id"), node.ref_doc_id)}
        return (
            # Empty for an index over a store with texts, since LlamaIndex then does not list ids.
            (not ids or node.node_id in ids)
            and (documents is None or node.ref_doc_id in documents)
            and (filters is None or _matches(filters, stored) is True)
        )

    return passes


def _matches(condition: MetadataFilter | MetadataFilters, metadata: Mapping[str, Any]) -> bool | None:
    """Whether metadata matches a condition; None where stores differ, for missing values and values of other types."""
    if isinstance(condition, MetadataFilters):
        kind = condition.condition or FilterCondition.AND
        if kind not in (FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT):
            raise _unknown(kind)
        if not condition.filters:
            return True
        results = {_matches(inner, metadata) for inner in condition.filters}
        # One False decides "and"; one True decides "or" and "not", which requires that no condition matches.
        decisive = kind != FilterCondition.AND
        matches = decisive if decisive in results else None if None in results else not decisive
        return not matches if kind == FilterCondition.NOT and matches is not None else matches
    if metadata.get(condition.key) is None and condition.operator != FilterOperator.IS_EMPTY:
        return None
    try:
        return build_metadata_filter_fn(lambda _: metadata, MetadataFilters(filters=[condition]))("")
    except TypeError:
        return None
    except ValueError as error:
        raise _unknown(condition.operator) from error


def _unknown(kind: Any) -> OptionError:
    return OptionError(
        f"the filter of the search contains an unknown {describe(kind)}, so it cannot be applied to neighbors; set "
        "read_neighbors= to a function that returns the nodes around one",
        kind,
    )
