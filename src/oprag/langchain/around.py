"""Reading the documents around one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.documents import Document

from oprag.chunk import Chunk, changed
from oprag.errors import OptionError
from oprag.langchain.documents import chunks_of
from oprag.neighbors import NeighborReader

__all__ = ["neighbor_reader"]


def neighbor_reader(given: Any, retriever: Any) -> NeighborReader | None:
    """What reads the chunks around one, None where there is nothing to read from.

    Args:
        given: A function of a document and a number, a `DocumentIndex`, or None.
        retriever: The wrapped retriever; one over a `DocumentIndex` knows its own neighbours.

    Raises:
        OptionError: It is something else.
    """
    source = getattr(retriever, "index", None) if given is None else given
    if callable(getattr(source, "neighbors", None)):
        return _of_index(source)
    if given is None:
        return None
    if not callable(given):
        raise OptionError(
            "read_neighbors must be a function of a document and a number, or an oprag.DocumentIndex, got "
            f"{type(given).__name__}",
            given,
        )
    return _of_function(given)


def _of_function(read: Callable[[Document, int], Iterable[Document]]) -> NeighborReader:
    return lambda chunk, number: chunks_of(list(read(chunk.origin, number)))


def _of_index(index: Any) -> NeighborReader:
    def read(chunk: Chunk, number: int) -> list[Chunk]:
        return [
            changed(near, origin=Document(near.text, id=near.id, metadata=dict(near.metadata)))
            for near in index.neighbors(chunk, number)
        ]

    return read
