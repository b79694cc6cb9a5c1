"""Checking what LlamaIndex's indexes, retrievers, stores and nodes tell about the order of their sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.indices.base import BaseIndex
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from pydantic import BaseModel

from oprag.chunk import Chunk
from oprag.errors import ChunkError, OptionError
from oprag.files.source_reader import ReadSource, as_reader
from oprag.llama_index.neighbors import refuse_filter
from oprag.llama_index.nodes import chunk_of
from oprag.llama_index.vectors import IndexFields, docstore_of, searched_by, searched_in, store_of
from oprag.options import ContextOptions
from oprag.positions.check_listings import Listing, check_listings
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.ladder import PositionKey
from oprag.positions.position_check import PositionCheck
from oprag.positions.remedies import Remedies
from oprag.positions.sources import SourceKey
from oprag.stores.adapter import StoreAdapter, adapter_of, has_own_adapter
from oprag.stores.llama_index_nodes import NODE_FIELD, nodes_in

__all__ = ["check_positions", "chunks_in", "remedies_for"]

# Where retrievers and engines have the ones that they wrap.
_INNER = ("retriever", "_retriever", "_vector_retriever")


def check_positions(
    searched: Any,
    *,
    read_source: ReadSource | None = None,
    source_key: SourceKey | None = None,
    position_key: PositionKey | None = None,
    max_chunks: int = 20_000,
) -> PositionCheck:
    """Check what the order of each source rests on, before a question is asked.

    A source has a problem where an `OrderPreservingRetriever` could not be certain of its order. Nothing is embedded or
    changed.

    Args:
        searched: An index, a retriever or query engine, with the filters and the options that it has; a vector store
            that keeps texts, a docstore, or the nodes.
        read_source: Where the nodes of sources with a problem are looked for: a folder, a mapping of source names to
            texts, or a function of the name; by default that of the retriever.
        source_key: See `oprag.ContextOptions.source_key`.
        position_key: See `oprag.ContextOptions.position_key`.
        max_chunks: Maximum number of nodes to read; of larger stores the first ones.

    Returns:
        What was found. Printed, it is a table, worst sources first, with a line of code against each problem.

    Raises:
        OptionError: The nodes cannot be listed, or an option is invalid.
        ChunkError: Something in a list is not a node.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> pages = [TextNode(text=text, metadata={"file_name": "book.pdf", "page_label": "1"}) for text in ("a", "b")]
        >>> check = check_positions(pages)
        >>> check.ok, check.sources[0].orderable_pairs
        (False, 0.0)
    """
    store_order = True
    if isinstance(searched, IndexFields):
        source_key, position_key = source_key or searched.source_key, position_key or searched.position_key
        store_order = searched.store_order
        read_source = searched.read_source if read_source is None else read_source
    refuse_filter("read_source", read_source)
    options = ContextOptions(source_key=source_key, position_key=position_key)
    listings: list[Listing] = []
    writable = False
    merging = isinstance(getattr(searched, "retriever", searched), AutoMergingRetriever)
    # Its parents are not in the store, and nothing that searches a docstore alone asks for its sequence.
    by_store = store_order and not merging and not isinstance(searched, BaseDocumentStore)
    kinds: set[str] = set()
    for adapter, docstore in _stores(searched):
        rows = None if adapter is None else adapter.chunks()
        if adapter is not None and rows is not None:
            writable = writable or (adapter.writable and not merging)
            kinds.add(type(adapter.store).__name__)
            in_order, own = by_store and adapter.in_insertion_order, has_own_adapter(adapter.store)
            listings.append(Listing(adapter.name, chunks_in(rows), in_order, adapter.total, read_whole=own))
        elif docstore is not None and docstore.docs and (adapter is None or not adapter.search):
            nodes = nodes_in(docstore)
            listings.append(Listing(type(docstore).__name__, _chunks_of(nodes), total=len(nodes)))
    in_store = bool(listings)
    return check_listings(
        listings or [_given(searched)],
        options,
        lambda chunks: _for_given(remedies_for(chunks, in_store=in_store, writable=writable), searched, kinds),
        max_chunks=max_chunks,
        read_source=as_reader(read_source),
    )


def _stores(searched: Any) -> Iterator[tuple[StoreAdapter | None, BaseDocumentStore | None]]:
    """The stores that are searched, and the docstores of those that do not list their nodes."""
    if isinstance(searched, IndexFields) and searched.index is not None:
        searched = searched.index
    if isinstance(searched, BasePydanticVectorStore):
        # The others need the nodes of an index.
        yield (adapter_of(searched) if searched.stores_text else None), None
    elif isinstance(searched, BaseDocumentStore):
        yield adapter_of(searched), searched
    elif isinstance(searched, VectorStoreIndex):
        yield store_of(searched_in(searched)), searched.docstore
    elif isinstance(searched, BaseIndex):
        yield docstore_of(searched) or adapter_of(searched.docstore), searched.docstore
    elif isinstance(searched, BaseRetriever | BaseQueryEngine | BaseChatEngine):
        yield from _searched_inside(searched)


def _searched_inside(searched: Any) -> Iterator[tuple[StoreAdapter | None, BaseDocumentStore | None]]:
    """As `_stores`, for a retriever or an engine."""
    where, index = searched_by(searched), getattr(searched, "_index", None)
    if where is not None:
        yield store_of(where, searched), where.docstore
    elif isinstance(index, BaseIndex) and not isinstance(index, VectorStoreIndex):
        yield from _stores(index)
    else:
        inner = next((one for name in _INNER if (one := getattr(searched, name, None)) is not None), None)
        for one in (inner, *(getattr(searched, "_retrievers", None) or ())):
            yield from _stores(one)


def chunks_in(rows: Iterable[StoredChunk]) -> Iterator[Chunk]:
    """The chunks of a store; where it has no nodes as such, they are in the metadata."""
    for rank, row in enumerate(rows):
        if row.node is not None:
            yield chunk_of(row.node, rank)
        elif NODE_FIELD in row.metadata:
            yield chunk_of(metadata_dict_to_node(dict(row.metadata), row.text), rank)
        else:
            yield row.as_chunk(rank)


def _chunks_of(nodes: Iterable[Any]) -> Iterator[Chunk]:
    for rank, given in enumerate(nodes):
        node = given.node if isinstance(given, NodeWithScore) else given
        if not isinstance(node, BaseNode):
            raise ChunkError(f"expected LlamaIndex nodes, got {type(node).__name__} at place {rank}", node)
        yield chunk_of(node, rank)


def _given(nodes: Any) -> Listing:
    """The nodes that a caller gave."""
    # Pydantic's objects list their fields.
    if isinstance(nodes, str | Mapping | BaseModel) or not isinstance(nodes, Iterable):
        raise OptionError(
            f"the nodes of {type(nodes).__name__} cannot be listed; give its index, or the nodes: "
            "check_positions(nodes)",
            nodes,
        )
    return Listing("nodes", _chunks_of(nodes), total=len(nodes) if isinstance(nodes, Sized) else None)


_CANNOT_DELETE = "FaissVectorStore"
# By the metadata key that only this parser writes.
_PARSERS = {"window": "SentenceWindowNodeParser()", "header_path": "MarkdownNodeParser()"}


def remedies_for(chunks: Sequence[Chunk], *, in_store: bool, writable: bool = False) -> Remedies:
    """The lines of code for these nodes, in the store of an index or in a list."""
    keys = {key for chunk in chunks for key in chunk.metadata}
    parser = next((parser for key, parser in _PARSERS.items() if key in keys), "SentenceSplitter()")
    if any(chunk.parent_id or chunk.child_ids for chunk in chunks):
        parser = "HierarchicalNodeParser.from_defaults()"
    again = "  # and fill the store anew" if in_store else ""

    def stamp(step: str) -> str:
        return f"VectorStoreIndex.from_documents(documents, transformations=[{parser}, {step}]){again}"

    return Remedies(
        stamp=stamp("StampPositions()"),
        name=stamp('StampPositions(source="...")'),
        # LlamaIndex writes them by itself.
        offsets="",
        write="write_positions(index{options})" if writable else "",
        retrieve="OrderPreservingRetriever(retriever=index.as_retriever(), {options})",
        delete=(
            "index.delete_nodes(check_positions(index{options}).ids({source}), delete_from_docstore=True)"
            "  # and add it once"
            if in_store
            else "nodes = check_positions(nodes{options}).distinct(nodes)"
        ),
    )


def _for_given(remedies: Remedies, searched: Any, kinds: Collection[str]) -> Remedies:
    """The lines by what the user has, which need not be an index.

    Args:
        remedies: The lines for an index.
        searched: What was checked.
        kinds: The classes of its stores.
    """
    if _CANNOT_DELETE in kinds:
        again = f"VectorStoreIndex.from_documents(documents)  # a {_CANNOT_DELETE} cannot delete {{source}}"
        return replace(remedies, delete=again)
    given = ""
    if isinstance(searched, BasePydanticVectorStore):
        given, delete = "vector_store", "vector_store.delete_nodes({ids})"
    elif isinstance(searched, BaseDocumentStore):
        given, delete = "docstore", "[docstore.delete_document(key) for key in {ids}]"
    if not given:
        return remedies
    ids = f"check_positions({given}{{options}}).ids({{source}})"
    return replace(
        remedies,
        write=remedies.write.replace("(index", f"({given}"),
        delete=f"{delete.format(ids=ids)}  # and add it once",
    )
