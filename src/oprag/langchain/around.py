"""Reading the documents around one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever

from oprag.assembly.neighbors import NeighborReader
from oprag.chunk import Chunk, changed
from oprag.errors import ChunkError, OptionError
from oprag.langchain.documents import chunks_of
from oprag.langchain.wrapped import takes_filter
from oprag.options import requires

__all__ = ["filter_of", "neighbor_reader"]

# By name, since it may not be installed.
_COMPRESSION = "langchain_classic.retrievers.contextual_compression.ContextualCompressionRetriever"


def neighbor_reader(given: Any, retriever: Any, filter: Callable[[], Any] = lambda: None) -> NeighborReader | None:
    """What reads the chunks around one, None where there is nothing to read from.

    Args:
        given: A function of a document and a number, a `DocumentIndex`, or None.
        retriever: The wrapped retriever; one over a `DocumentIndex` knows its own neighbours.
        filter: Gives the filter of the search for a function that requires it.

    Raises:
        OptionError: It is something else.
    """
    source = _index_of(retriever) if given is None else given
    if callable(getattr(type(source), "neighbors", None)):
        return _OfIndex(source)
    if given is None:
        return None
    if not callable(given) or inspect.iscoroutinefunction(given):
        raise OptionError(
            "read_neighbors must be a function of a document and a number (not an async one), or an "
            f"oprag.DocumentIndex, got {type(given).__name__}",
            given,
        )
    if requires(given, "filter"):
        return _OfFunction(lambda document, number: given(document, number, filter=filter()))
    return _OfFunction(given)


def filter_of(retriever: Any) -> Any:
    """The filter of a wrapped retriever's own search, None without one.

    Raises:
        OptionError: It cannot be told: any other class, a subclass too, may have a filter of its own.
    """
    inner = _uncompressed(retriever)
    if type(inner) is VectorStoreRetriever:
        return inner.search_kwargs.get("filter")
    takes_one = takes_filter(inner) and not isinstance(inner, VectorStoreRetriever)
    if takes_one or _index_of(inner) is not None:
        return None
    raise OptionError(
        "read_neighbors and read_source cannot be given the filter of the search, which is not known for the wrapped "
        f"{type(inner).__name__}; wrap the vector store or its as_retriever(), or give a function without a required "
        "parameter filter",
        inner,
    )


def _uncompressed(retriever: Any) -> Any:
    while f"{type(retriever).__module__}.{type(retriever).__qualname__}" == _COMPRESSION:
        retriever = retriever.base_retriever
    return retriever


def _index_of(retriever: Any) -> Any:
    """The index of a wrapped retriever that has no filter.

    Any other class, a subclass too, may leave out on purpose what would come back as a neighbour.
    """
    retriever = _uncompressed(retriever)
    if retriever is None:
        return None
    # Loads NumPy.
    from oprag.langchain.index import DocumentIndexRetriever

    return retriever.index if type(retriever) is DocumentIndexRetriever else None


@dataclass(frozen=True)
class _OfFunction:
    """Reads through a function of documents."""

    read: Callable[[Document, int], Iterable[Document]]

    def __call__(self, chunk: Chunk, number: int) -> list[Chunk]:
        around = self.read(chunk.origin, number)
        given: Any = around
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ChunkError(
                f"read_neighbors must give a list of documents, got {type(around).__name__} for a chunk "
                f"({chunk.label()})",
                around,
            )
        return chunks_of(list(around))


@dataclass(frozen=True)
class _OfIndex:
    """Reads from a `DocumentIndex`."""

    index: Any

    def __call__(self, chunk: Chunk, number: int) -> list[Chunk]:
        return [
            changed(near, origin=Document(near.text, id=near.id, metadata=dict(near.metadata)))
            for near in self.index.neighbors(chunk, number)
        ]
