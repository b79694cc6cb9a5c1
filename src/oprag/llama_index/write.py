"""Writing positions into LlamaIndex's indexes."""

from __future__ import annotations

from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.indices.base import BaseIndex
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from oprag.chunk import Chunk
from oprag.files.source_reader import ReadSource
from oprag.llama_index.neighbors import refuse_filter
from oprag.llama_index.nodes import chunk_of
from oprag.llama_index.vectors import docstore_of, searched_in, store_of
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.sources import SourceKey
from oprag.positions.write_plan import WrittenPositions
from oprag.stores.adapter import adapter_of
from oprag.stores.write_into import write_into

__all__ = ["write_positions"]


def write_positions(
    index: Any,
    *,
    read_source: ReadSource | None = None,
    trust_store_order: bool = False,
    source_key: SourceKey | None = None,
    dry_run: bool = False,
) -> WrittenPositions:
    """Write positions into the metadata of the nodes of an index that have none, without embedding anything.

    The order of a source is that of its text, if `read_source` has it, else that of the links of its nodes, else the
    sequence in which the store received them, where overlapping texts confirm it. Nodes get `chunk_index` and
    `chunk_numbering`, as from `StampPositions`, and those that were found in a text without pages also `start_index`
    and `end_index`, which neither models nor embedders are shown. Sources whose nodes tell their order already are left
    alone, unless it was written from the sequence of the store and `read_source` has their text. Vectors, texts and all
    other metadata stay as they are. PostgreSQL writes all or nothing; after an interruption in another store, the next
    call writes the rest.

    Args:
        index: A `VectorStoreIndex`, whose store and docstore are written to, another index, a vector store that keeps
            texts, or a docstore. Persist one that is in memory afterwards.
        read_source: The texts of the sources: a folder of text, Markdown and PDF files, a mapping of source names to
            texts, or a function of the name. Where a text lacks some chunks, positions are written for the others.
        trust_store_order: Whether the sequence of the store is written where overlapping texts do not confirm all of
            it. It is wrong where a part of a source was added later, as by an update, and nothing warns afterwards.
        source_key: See `oprag.ContextOptions.source_key`.
        dry_run: Whether to find the positions and write nothing.

    Returns:
        What was written for each source, and why not all of it. Printed, it is a table.

    Raises:
        OptionError: The store cannot list its nodes or change their metadata, or an option is invalid.
    """
    refuse_filter("read_source", read_source)
    store = index
    if isinstance(index, BaseIndex) and not isinstance(index, VectorStoreIndex):
        store, adapter = index.docstore, docstore_of(index) or adapter_of(index.docstore)
    elif isinstance(index, BaseDocumentStore) or (isinstance(index, BasePydanticVectorStore) and index.stores_text):
        adapter = adapter_of(store)
    else:
        searched = searched_in(index)
        store, adapter = searched.vector_store, store_of(searched)
    return write_into(
        adapter,
        store,
        _as_chunk,
        read_source=read_source,
        trust_store_order=trust_store_order,
        source_key=source_key,
        dry_run=dry_run,
    )


def _as_chunk(stored: StoredChunk, rank: int) -> Chunk:
    return chunk_of(stored.node, rank)
