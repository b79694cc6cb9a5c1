"""Reading the nodes around one: from a docstore or a store, held to the filter of the search, or by a function."""

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

from oprag.assembly.neighbors import NeighborReader
from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.llama_index.nodes import chunk_of, chunks_of
from oprag.options import ContextOptions, requires
from oprag.positions.insertion_order import StoredChunk
from oprag.stores.adapter import StoreAdapter
from oprag.stores.stored_neighbors import stored_neighbors
from oprag.vector_fields import list_of_neighbors

__all__ = ["chunk_of_stored", "in_documents", "neighbor_reader", "refuse_filter", "store_reader"]

Passes = Callable[[BaseNode], bool]


def refuse_filter(name: str, function: Any) -> None:
    """Reject a function that requires the filter of the search: in LlamaIndex a query has no filter of its own."""
    if requires(function, "filter"):
        raise OptionError(
            f"{name} is a function that requires filter, and LlamaIndex has no filter of a query to give it; bind one "
            "with functools.partial(function, filter=...)",
            function,
        )


def neighbor_reader(
    source: Any,
    docstore: BaseDocumentStore | None,
    retriever: BaseRetriever | None,
    listed: NeighborReader | None = None,
) -> NeighborReader | None:
    """A function that reads the chunks around one; None where there is nothing to read from.

    Nodes of a docstore pass the filter of the search, as far as that is known. Where it is not, a docstore is read only
    if it was given for this.

    Args:
        source: What was given to read from: a docstore or a function.
        docstore: That of the index, for a source that was not given.
        retriever: What searched.
        listed: Reads the chunks around one in the store, for nodes whose links are not in the docstore.
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
    """Reads the chunks around one by its links in a docstore, or in the store where it has none."""

    def __init__(self, docstore: BaseDocumentStore, by_links: NeighborReader, listed: NeighborReader) -> None:
        self._docstore = docstore
        self._by_links = by_links
        self._listed = listed

    def __call__(self, chunk: Chunk, number: int) -> Iterable[Chunk]:
        return (self._by_links if _has_links(self._docstore, chunk) else self._listed)(chunk, number)

    def locating(self, locate: Any, otherwise: NeighborReader) -> NeighborReader:
        """As `StoredNeighbors.locating`."""
        locating = getattr(self._listed, "locating", None)
        listed = otherwise if locating is None else locating(locate, otherwise)
        return _LinkedOrListed(self._docstore, otherwise, listed)


def _as_chunks(read: Callable[[BaseNode, int], Any], chunk: Chunk, number: int) -> list[Chunk]:
    nodes = list_of_neighbors(read(chunk.origin.node, number), "nodes", chunk)
    return chunks_of([NodeWithScore(node=one) if isinstance(one, BaseNode) else one for one in nodes])


def _has_links(docstore: BaseDocumentStore, chunk: Chunk) -> bool:
    node = docstore.get_document(chunk.origin.node.node_id, raise_error=False)
    return node is not None and not {NodeRelationship.PREVIOUS, NodeRelationship.NEXT}.isdisjoint(node.relationships)


def store_reader(
    store: StoreAdapter, documents: Collection[str] | None, options: ContextOptions, *, store_order: bool
) -> NeighborReader | None:
    """A function that reads the chunks around one from a store; None where the store cannot list what it searches.

    Args:
        store: The store that was searched, with its filter.
        documents: The ids of the documents that the search is restricted to.
        options: How sources and positions are found.
        store_order: Whether the sequence in which the store received nodes is used.
    """
    passes = partial(in_documents, documents)
    return stored_neighbors(store, options, chunk_of_stored, passes, store_order=store_order)


def chunk_of_stored(stored: StoredChunk, rank: int) -> Chunk:
    """What a store listed as a chunk."""
    return chunk_of(stored.node, rank, origin=NodeWithScore(node=stored.node))


def in_documents(documents: Collection[str] | None, stored: StoredChunk) -> bool:
    """Whether what a store listed belongs to one of these documents."""
    return documents is None or stored.node.ref_doc_id in documents


def _linked(docstore: BaseDocumentStore, passes: Passes | None, node: BaseNode, number: int) -> list[BaseNode]:
    """The nodes around one, by the PREVIOUS and NEXT links of a docstore."""
    before = list(_follow(docstore, passes, node, NodeRelationship.PREVIOUS, number))
    # As it was indexed: a postprocessor may have put its window in place of a sentence.
    itself = docstore.get_document(node.node_id, raise_error=False)
    after = _follow(docstore, passes, node, NodeRelationship.NEXT, number)
    return [*reversed(before), *([] if itself is None else [itself]), *after]


def _follow(
    docstore: BaseDocumentStore, passes: Passes | None, node: BaseNode, relation: NodeRelationship, number: int
) -> Iterator[BaseNode]:
    """The nodes in one direction, up to the first that the search leaves out."""
    source, seen = node.ref_doc_id, {node.node_id}
    for _ in range(number):
        related = node.relationships.get(relation)
        if not isinstance(related, RelatedNodeInfo) or related.node_id in seen:
            return
        found = docstore.get_document(related.node_id, raise_error=False)
        if found is None and docstore.document_exists(node.node_id):
            # It was deleted, or filtered before it came into the index.
            return
        if found is None:
            raise OptionError(
                f"the docstore has no node {related.node_id!r}, which the node {node.node_id!r} names as its "
                f"{relation.name.lower()} one; an index over a store that keeps texts fills its docstore only with "
                "store_nodes_override=True: give read_neighbors=index instead",
                related.node_id,
            )
        # Some splitters link the last node of a document with the first of another.
        if found.ref_doc_id != source or (passes is not None and not passes(found)):
            return
        seen.add(found.node_id)
        node = found
        yield node


def _filter_of(retriever: BaseRetriever | None) -> Passes | None:
    """Whether the search of a retriever would leave a node in; None where that cannot be told from outside."""
    # A subclass may search in its own way, and keywords for the store may hold a filter in the store's own language.
    if type(retriever) is not VectorIndexRetriever or retriever._kwargs:  # noqa: SLF001
        return None
    filters, documents, ids = retriever._filters, retriever._doc_ids, retriever._node_ids  # noqa: SLF001
    if filters is not None and not isinstance(filters, MetadataFilters):
        return None

    def passes(node: BaseNode) -> bool:
        # As LlamaIndex hands it to a store.
        stored = {**node.metadata, **dict.fromkeys(("document_id", "doc_id", "ref_doc_id"), node.ref_doc_id)}
        return (
            # Empty for an index over a store that keeps texts: LlamaIndex then lists no ids.
            (not ids or node.node_id in ids)
            and (documents is None or node.ref_doc_id in documents)
            and (filters is None or _holds(filters, stored) is True)
        )

    return passes


def _holds(condition: MetadataFilter | MetadataFilters, metadata: Mapping[str, Any]) -> bool | None:
    """Whether a condition holds; None where stores differ: for a value that is missing or of another kind."""
    if isinstance(condition, MetadataFilters):
        kind = condition.condition or FilterCondition.AND
        if kind not in (FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT):
            raise _unknown(kind)
        if not condition.filters:
            return True
        results = {_holds(one, metadata) for one in condition.filters}
        # One that fails decides "and"; one that holds decides "or" and "not", which means that none holds.
        decisive = kind != FilterCondition.AND
        holds = decisive if decisive in results else None if None in results else not decisive
        return not holds if kind == FilterCondition.NOT and holds is not None else holds
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
        f"neighbors cannot be tested against the filter of the search, which has an unknown {kind!r}; give "
        "read_neighbors= a function that returns the nodes around one",
        kind,
    )
