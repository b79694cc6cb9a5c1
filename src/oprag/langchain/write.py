"""Write positions into LangChain's stores."""

from __future__ import annotations

from typing import Any

from oprag._internal.files.source_reader import ReadSource
from oprag.positions.source_names import SourceKey
from oprag.positions.write import WrittenPositions
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
    """Write missing positions into the metadata of the chunks of a store, without embedding anything.

    The order of a source is taken from its full text if `read_source` contains it, else from the insertion order of the
    store if overlapping texts confirm it. Chunks receive `chunk_index` and `chunk_numbering`, the same keys as from
    `stamp_positions`; those without a page that are located in a text also receive `start_index` and `end_index`.
    Vectors, texts and all other metadata are not changed. Sources whose order is known are skipped, unless it was
    written from the insertion order of the store and `read_source` contains their text. If a call is interrupted, the
    next one writes the rest.

    Args:
        store: A vector store. Save a store in memory, such as `FAISS`, afterwards.
        read_source: Where to read the full text of a source: a folder of text, Markdown and PDF files, a mapping of
            source names to texts, a function that takes the name, or the documents of a loader.
        trust_store_order: Whether to write the insertion order of the store where nothing confirms it. It is wrong if
            part of a source was added later, for example by an update, and no warning is issued afterwards.
        source_key: See `oprag.ContextOptions.source_key`.
        dry_run: Determine the positions without writing them.

    Returns:
        The number of positions written for each source, with the reason if some are missing. It prints as a table.

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
        read_source=read_source,
        trust_store_order=trust_store_order,
        source_key=source_key,
        dry_run=dry_run,
    )
