"""Write positions into LlamaIndex's indexes."""

from __future__ import annotations

from typing import Any

from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from oprag._internal.files.source_reader import ReadSource
from oprag.llama_index.wrapped import searched_in, store_of
from oprag.positions.source_names import SourceKey
from oprag.positions.write import WrittenPositions
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
    store = index
    if isinstance(index, BaseDocumentStore) or (isinstance(index, BasePydanticVectorStore) and index.stores_text):
        adapter = adapter_of(store)
    else:
        searched = searched_in(index)
        store = searched.docstore if searched.vector_store is None else searched.vector_store
        adapter = store_of(searched)
    return write_into(
        adapter,
        store,
        read_source=read_source,
        trust_store_order=trust_store_order,
        source_key=source_key,
        dry_run=dry_run,
    )
