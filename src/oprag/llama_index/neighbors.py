"""Read neighbors of a node: from a store or a docstore, with the filter of the search, or with a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from oprag._internal.masking import describe, masked_error
from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.llama_index.nodes import chunk_of, chunks_of
from oprag.llama_index.wrapped import searched_by
from oprag.pipeline.neighbors import NeighborReader
from oprag.stores.adapter import StoredChunk

__all__ = ["NO_FILTER", "chunk_of_stored", "neighbor_reader"]

Passes = Callable[[BaseNode], bool]

_NEGATIVE = (FilterOperator.NE, FilterOperator.NIN)
NO_FILTER = "LlamaIndex queries do not contain a filter"
"""Why functions that require the filter of the search are rejected."""


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
    filters, documents, ids = (searched[0].restrictions.get(name) for name in ("filters", "doc_ids", "node_ids"))
    if filters is not None and not isinstance(filters, MetadataFilters):
        return None

    def passes(node: BaseNode) -> bool:
        # The metadata that LlamaIndex writes to a store.
        stored = {**node.metadata, **dict.fromkeys(("document_id", "doc_id", "ref_doc_id"), node.ref_doc_id)}
        return (
            # Empty for an index over a store with texts, since LlamaIndex then does not list ids.
            (not ids or node.node_id in ids)
            and (documents is None or node.ref_doc_id in documents)
            and (filters is None or _matches(filters, stored))
        )

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
