"""Check and write the positions of the chunks in LangChain's stores, retrievers and documents."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable

from oprag.langchain.chain import OrderPreservingChain
from oprag.langchain.documents import chunks_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.langchain.wrapped import searched_in
from oprag.options import PositionKey, SourceKey
from oprag.positions.check_report import PositionCheck
from oprag.positions.source_reader import ReadSource
from oprag.positions.suggestions import LANGCHAIN
from oprag.stores.adapter import adapter_of
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
        searched: A vector store, a retriever or an `OrderPreservingChain`, checked with its own filter and options; or
            the documents. If several stores contain a source, it is checked in the first of them.
        read_source: Where to read the full text of sources with a problem, to search for their chunks: a folder, a
            mapping of source names to texts, or a function that takes the name; by default that of the retriever.
        source_key: See `oprag.ContextOptions.source_key`.
        position_key: See `oprag.ContextOptions.position_key`.
        max_chunks: Maximum number of chunks to read; of a larger store, the first ones are checked.

    Returns:
        The result for each source. It prints as a table, worst sources first, with a line of code that fixes each
        problem.

    Raises:
        OptionError: The chunks of the store cannot be listed, or an option is invalid.
        ChunkError: An item of the list is not a `Document`.

    Example:
        >>> from langchain_core.documents import Document
        >>> pages = [Document(text, metadata={"source": "book.pdf", "page": 1}) for text in ("one", "two")]
        >>> check = check_positions(pages)
        >>> check.ok, check.sources[0].certainty, check.sources[0].suggestion
        (False, 'unknown', 'documents = stamp_positions(documents)  # and fill a new store')
    """
    searched = searched._retriever if isinstance(searched, OrderPreservingChain) else searched  # noqa: SLF001
    retriever = searched if isinstance(searched, OrderPreservingRetriever) else None
    if retriever is not None:
        stores = retriever._searched(None)  # noqa: SLF001
    else:
        searches = searched_in(searched) if isinstance(searched, Runnable) else [(searched, {})]
        stores = [store for one, search in searches if (store := adapter_of(one, search)) is not None]
    return check_searched(
        searched,
        stores,
        LANGCHAIN,
        chunks_of,
        retriever=retriever,
        read_source=read_source,
        source_key=source_key,
        position_key=position_key,
        max_chunks=max_chunks,
    )


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
