"""Writing positions into LangChain's stores."""

from __future__ import annotations

from typing import Any

from oprag.files.source_reader import ReadSource
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.sources import SourceKey
from oprag.positions.write_plan import WrittenPositions
from oprag.stores.adapter import adapter_of
from oprag.stores.write_into import write_into

__all__ = ["write_positions"]


def write_positions(
    store: Any,
    *,
    read_source: ReadSource | None = None,
    trust_store_order: bool = False,
    source_key: SourceKey | None = None,
    dry_run: bool = False,
) -> WrittenPositions:
    """Write positions into the metadata of a store whose chunks have none, without embedding anything.

    The order of a source is that of its text, if `read_source` has it, else the sequence in which the store received
    its chunks, where overlapping texts confirm it. Chunks get `chunk_index` and `chunk_numbering`, as from
    `stamp_positions`, and those that were found in a text without pages also `start_index` and `end_index`. Sources
    whose metadata tell their order already are left alone, unless it was written from the sequence of the store and
    `read_source` has their text. Vectors, texts and all other metadata stay as they are. PostgreSQL and LanceDB write
    all or nothing; after an interruption in another store, the next call writes the rest.

    Args:
        store: A vector store, or a retriever with a list of documents. Save one that is in memory, such as `FAISS`,
            afterwards.
        read_source: The texts of the sources: a folder of text, Markdown and PDF files, a mapping of source names to
            texts, or a function of the name. Where a text lacks some chunks, positions are written for the others.
        trust_store_order: Whether the sequence of the store is written where overlapping texts do not confirm all of
            it. It is wrong where a part of a source was added later, as by an update, and nothing warns afterwards.
        source_key: See `oprag.ContextOptions.source_key`.
        dry_run: Whether to find the positions and write nothing.

    Returns:
        What was written for each source, and why not all of it. Printed, it is a table.

    Raises:
        OptionError: The store cannot list its chunks or change their metadata, or an option is invalid.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> _ = store.add_texts(["Cats purr.", "Dogs bark."], [{"source": "pets"}] * 2)
        >>> print(write_positions(store, read_source={"pets": "Cats purr. Dogs bark."}))
        positions of 2 of 2 chunks were written
        <BLANKLINE>
          source  chunks  written  position from       note
          pets    2       2        text of the source
        >>> sorted(document.metadata["start_index"] for document in store.similarity_search("Who barks?"))
        [0, 11]
    """
    return write_into(
        adapter_of(store),
        store,
        StoredChunk.as_chunk,
        read_source=read_source,
        trust_store_order=trust_store_order,
        source_key=source_key,
        dry_run=dry_run,
    )
