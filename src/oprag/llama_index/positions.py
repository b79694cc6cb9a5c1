"""Check and write the positions of the nodes in LlamaIndex's indexes, retrievers and stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from oprag.chunk import Chunk
from oprag.errors import ChunkError
from oprag.llama_index.hierarchy import with_absolute_spans
from oprag.llama_index.nodes import chunk_of
from oprag.llama_index.vectors import IndexFields
from oprag.llama_index.wrapped import merged_from, searched_by, searched_in, store_of
from oprag.options import PositionKey, SourceKey
from oprag.positions.check_report import PositionCheck
from oprag.positions.source_reader import ReadSource
from oprag.positions.suggestions import LLAMA_INDEX
from oprag.stores.adapter import StoreAdapter, StoredChunk, adapter_of
from oprag.stores.listing import chunks_of_rows
from oprag.stores.positions import WrittenPositions, check_searched, write_into

__all__ = ["check_positions", "write_positions"]


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
    merged = merged_from(searched)

    def as_chunks(store: StoreAdapter, rows: Iterable[StoredChunk]) -> Iterator[Chunk]:
        # Offsets in a document are known only with the parents of the nodes. One more chunk than the maximum shows
        # whether others remain.
        chunks = list(islice(chunks_of_rows(rows), max_chunks + 1))
        parents: Any = merged or (store.store if isinstance(store.store, BaseDocumentStore) else store.docstore)
        yield from with_absolute_spans(chunks, [parents]) if parents else chunks

    is_docstore = isinstance(searched, BaseDocumentStore)
    variable = "vector_store" if isinstance(searched, BasePydanticVectorStore) else "index"
    return check_searched(
        searched,
        _stores(searched),
        replace(LLAMA_INDEX, store="docstore" if is_docstore else variable),
        _chunks_of,
        retriever=searched if isinstance(searched, IndexFields) else None,
        read_source=read_source,
        source_key=source_key,
        position_key=position_key,
        max_chunks=max_chunks,
        as_chunks=as_chunks,
        # The parents of an AutoMergingRetriever are not in the store, and a search in a docstore alone never uses its
        # insertion order.
        store_order=merged is None and not is_docstore,
        writable=merged is None,
    )


def write_positions(
    index: Any,
    *,
    read_source: ReadSource | None = None,
    trust_store_order: bool = False,
    source_key: SourceKey | None = None,
    dry_run: bool = False,
) -> WrittenPositions:
    """Write missing positions into the metadata of the nodes of an index, without embedding anything.

    The order of a source is taken from its full text if `read_source` contains it, else from the links of its nodes,
    else from the insertion order of the store if overlapping texts confirm it. Nodes receive `chunk_index` and
    `chunk_numbering`, the same keys as from `StampPositions`; those without a page that are located in a text also
    receive `start_index` and `end_index`. These keys are neither embedded nor shown to models. Vectors, texts and all
    other metadata are not changed. Sources whose order is known are skipped, unless it was written from the insertion
    order of the store and `read_source` contains their text. If a call is interrupted, the next one writes the rest.

    Args:
        index: A `VectorStoreIndex`, whose store and docstore are both updated; another index; a vector store that
            stores texts; or a docstore. Persist a store in memory afterwards.
        read_source: Where to read the full text of a source: a folder of text, Markdown and PDF files, a mapping of
            source names to texts, a function that takes the name, or the documents of a loader.
        trust_store_order: Whether to write the insertion order of the store where nothing confirms it. It is wrong if
            part of a source was added later, for example by an update, and no warning is issued afterwards.
        source_key: See `oprag.ContextOptions.source_key`.
        dry_run: Determine the positions without writing them.

    Returns:
        The number of positions written for each source, with the reason if some are missing. It prints as a table.

    Raises:
        OptionError: The store cannot list its nodes or change their metadata, or an option is invalid.
    """
    is_store = isinstance(index, BaseDocumentStore | BasePydanticVectorStore) and getattr(index, "stores_text", True)
    return write_into(
        adapter_of(index) if is_store else store_of(searched_in(index)),
        getattr(index, "vector_store", index),
        read_source=read_source,
        trust_store_order=trust_store_order,
        source_key=source_key,
        dry_run=dry_run,
    )


def _stores(searched: Any) -> list[StoreAdapter]:
    """The adapters of the searched stores."""
    if isinstance(searched, IndexFields) and searched.index is not None:
        searched = searched.index
    if not isinstance(searched, BaseDocumentStore | BasePydanticVectorStore):
        found = map(store_of, [searched_in(searched)] if isinstance(searched, BaseIndex) else searched_by(searched))
        return [store for store in found if store is not None]
    # Stores without texts require the nodes of an index.
    store = adapter_of(searched) if getattr(searched, "stores_text", True) else None
    return [] if store is None else [store]


def _chunks_of(nodes: Iterable[Any]) -> Iterator[Chunk]:
    for rank, given in enumerate(nodes):
        node = given.node if isinstance(given, NodeWithScore) else given
        if not isinstance(node, BaseNode):
            raise ChunkError(f"expected LlamaIndex nodes, got {type(node).__name__} at index {rank}", node)
        yield chunk_of(node, rank, origin=node)
