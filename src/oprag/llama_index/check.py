"""Check whether the order of sources is known in LlamaIndex's indexes, retrievers, stores and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from itertools import islice
from typing import Any

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import BaseModel

from oprag.chunk import Chunk, changed
from oprag.errors import ChunkError, OptionError
from oprag.files.source_reader import ReadSource, as_reader
from oprag.llama_index.found import merged_from, searched_by, searched_in, store_of
from oprag.llama_index.hierarchy import with_absolute_spans
from oprag.llama_index.neighbors import NO_FILTER
from oprag.llama_index.nodes import chunk_of
from oprag.llama_index.vectors import IndexFields
from oprag.options import ContextOptions, refuse_filter
from oprag.positions.check import Checked, check_listings
from oprag.positions.check_report import PositionCheck
from oprag.positions.readings import PositionKey
from oprag.positions.remedies import ADD_ONCE, Remedies
from oprag.positions.sources import SourceKey
from oprag.stores.adapter import StoreAdapter, StoredChunk, adapter_of, has_own_adapter
from oprag.stores.listing import chunk_of_row, chunks_in_search
from oprag.stores.llama_index_chunks import node_of_row
from oprag.stores.llama_index_nodes import nodes_in

__all__ = ["check_positions", "remedies_for"]

_BATCH = 1_000  # nodes whose parents are read at once


def check_positions(
    searched: Any,
    *,
    read_source: ReadSource | None = None,
    source_key: SourceKey | None = None,
    position_key: PositionKey | None = None,
    max_chunks: int = 20_000,
) -> PositionCheck:
    """Check how the order of each source is determined, before the first question.

    A source has a problem if an `OrderPreservingRetriever` cannot determine its order for certain. Nothing is embedded
    or changed.

    Args:
        searched: An index, a retriever or a query engine, checked with its own filters and options; a vector store that
            stores texts; a docstore; or the nodes.
        read_source: Where to read the full text of sources with a problem, to search for their nodes: a folder, a
            mapping of source names to texts, or a function that takes the name; by default that of the retriever.
        source_key: See `oprag.ContextOptions.source_key`.
        position_key: See `oprag.ContextOptions.position_key`.
        max_chunks: Maximum number of nodes to read; of a larger store, the first ones are checked.

    Returns:
        The result for each source. It prints as a table, worst sources first, with a line of code that fixes each
        problem.

    Raises:
        OptionError: The nodes cannot be listed, or an option is invalid.
        ChunkError: An item of the list is not a node.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> pages = [TextNode(text=text, metadata={"file_name": "book.pdf", "page_label": "1"}) for text in ("a", "b")]
        >>> check = check_positions(pages)
        >>> check.ok, check.sources[0].certainty
        (False, 'unknown')
    """
    store_order = True
    if isinstance(searched, IndexFields):
        source_key, position_key = source_key or searched.source_key, position_key or searched.position_key
        store_order = searched.store_order
        read_source = searched.read_source if read_source is None else read_source
    refuse_filter("read_source", read_source, NO_FILTER)
    options = ContextOptions(source_key=source_key, position_key=position_key)
    listings: list[Checked] = []
    writable = False
    merged = merged_from(searched)
    # The parents of an AutoMergingRetriever are not in the store, and a search in a docstore alone never uses its
    # insertion order.
    by_store = store_order and merged is None and not isinstance(searched, BaseDocumentStore)
    deletes, filtered = True, False
    for adapter, docstore in _stores(searched):
        rows = None if adapter is None else chunks_in_search(adapter)
        if adapter is not None and rows is not None:
            writable = writable or (adapter.writable and merged is None)
            filtered = filtered or bool(adapter.restrictions)
            deletes = deletes and type(adapter.store).__name__ != _CANNOT_DELETE
            in_order, own = by_store and adapter.in_insertion_order, has_own_adapter(adapter.store)
            chunks = _in_documents(_chunks_in(rows), merged or docstore)
            listings.append(Checked(adapter.name, chunks, in_order, adapter.total, own))
        elif docstore is not None and docstore.docs and (adapter is None or not adapter.search):
            nodes = nodes_in(docstore)
            chunks = _in_documents(_chunks_of(nodes), merged or docstore)
            listings.append(Checked(type(docstore).__name__, chunks, total=len(nodes)))
    given = "docstore" if isinstance(searched, BaseDocumentStore) else "index"
    given = "vector_store" if isinstance(searched, BasePydanticVectorStore) else given
    in_store = bool(listings)
    return check_listings(
        listings or [_given(searched)],
        options,
        partial(remedies_for, in_store=in_store, writable=writable, store=given, filtered=filtered, deletes=deletes),
        max_chunks=max_chunks,
        read_source=as_reader(read_source),
    )


def _stores(searched: Any) -> Iterator[tuple[StoreAdapter | None, BaseDocumentStore | None]]:
    """The adapters of the searched stores, with the docstores to read if a store cannot list its nodes."""
    if isinstance(searched, IndexFields) and searched.index is not None:
        searched = searched.index
    if isinstance(searched, BasePydanticVectorStore):
        # Stores without texts require the nodes of an index.
        yield (adapter_of(searched) if searched.stores_text else None), None
    elif isinstance(searched, BaseDocumentStore):
        yield adapter_of(searched), searched
    else:
        found = [searched_in(searched)] if isinstance(searched, BaseIndex) else searched_by(searched)
        yield from ((store_of(one), one.docstore) for one in found)


def _in_documents(chunks: Iterator[Chunk], docstore: BaseDocumentStore | None) -> Iterator[Chunk]:
    """Add the offsets in their document to chunks with a parent in a docstore."""
    while batch := list(islice(chunks, _BATCH)):
        yield from batch if docstore is None else with_absolute_spans(batch, [docstore])


def _chunks_in(rows: Iterable[StoredChunk]) -> Iterator[Chunk]:
    for rank, row in enumerate(rows):
        chunk = chunk_of_row(row, rank)
        # The offsets of a node with a parent are read from the nodes.
        yield changed(chunk, origin=NodeWithScore(node=node_of_row(row))) if chunk.parent_id else chunk


def _chunks_of(nodes: Iterable[Any]) -> Iterator[Chunk]:
    for rank, given in enumerate(nodes):
        node = given.node if isinstance(given, NodeWithScore) else given
        if not isinstance(node, BaseNode):
            raise ChunkError(f"expected LlamaIndex nodes, got {type(node).__name__} at index {rank}", node)
        yield chunk_of(node, rank, origin=NodeWithScore(node=node))


def _given(nodes: Any) -> Checked:
    """The listing of nodes that the caller passed."""
    # Pydantic models are iterable: they yield their fields.
    if isinstance(nodes, str | Mapping | BaseModel) or not isinstance(nodes, Iterable):
        raise OptionError(
            f"the nodes of {type(nodes).__name__} cannot be listed; pass its index, or the nodes: "
            "check_positions(nodes)",
            nodes,
        )
    total = len(nodes) if isinstance(nodes, Sized) else None
    return Checked("nodes", _chunks_of(nodes), total=total, read_whole=False)


_LEAVES = "  # index get_leaf_nodes(nodes), with all nodes in the docstore"
_CANNOT_DELETE = "FaissVectorStore"
_DELETE = {
    "index": "index.delete_nodes({ids}, delete_from_docstore=True)",
    "vector_store": "vector_store.delete_nodes({ids})",
    "docstore": "[docstore.delete_document(key) for key in {ids}]",
}
# Node parsers, by a metadata key that only this parser writes.
_PARSERS = {"window": "SentenceWindowNodeParser()", "header_path": "MarkdownNodeParser()"}


def remedies_for(
    chunks: Sequence[Chunk],
    *,
    in_store: bool,
    writable: bool = False,
    store: str = "index",
    filtered: bool = False,
    deletes: bool = True,
) -> Remedies:
    """Return the lines of code that fix problems with these nodes.

    Args:
        chunks: The nodes.
        in_store: Whether the nodes are in a store.
        writable: Whether positions can be written to it.
        store: The variable with the index, vector store or docstore.
        filtered: Whether a retriever with a filter was checked: another tenant's nodes must not be deleted.
        deletes: Whether nodes can be deleted from it.
    """
    keys = {key for chunk in chunks for key in chunk.metadata}
    parser = next((parser for key, parser in _PARSERS.items() if key in keys), "SentenceSplitter()")
    hierarchical = any(chunk.parent_id or chunk.child_ids for chunk in chunks)
    again = "  # and fill the store again" if in_store else ""

    def stamp(step: str) -> str:
        if hierarchical:
            # An index of all levels would find the text of a leaf several times.
            nodes = "HierarchicalNodeParser.from_defaults().get_nodes_from_documents(documents)"
            return f"nodes = {step}({nodes}){_LEAVES}"
        return f"VectorStoreIndex.from_documents(documents, transformations=[{parser}, {step}]){again}"

    ids = f"check_positions({'retriever' if filtered else store}{{options}}).ids({{source}})"
    return Remedies(
        stamp=stamp("StampPositions()"),
        name=stamp('StampPositions(source="...")'),
        write=f"write_positions({store}{{options}})" if writable else "",
        retrieve="OrderPreservingRetriever(retriever=index.as_retriever(), {options})",
        delete=_DELETE[store].format(ids=ids) + ADD_ONCE if in_store and deletes else "",
        module="oprag.llama_index",
    )
