"""What a context is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oprag.chunk import Chunk, Vector
from oprag.neighbors import NeighborReader
from oprag.render import Show

__all__ = ["Given"]


@dataclass(frozen=True, eq=False)
class Given:
    """Everything that the assembly takes beside its options, so that it can be done again with others.

    Attributes:
        chunks: All chunks that were retrieved, best first.
        question_vector: The vector of the question, of shape (dimension,), where it is known.
        read_neighbors: Gives the chunks around one, where they can be had.
        show: Writes a passage as the framework will show it; what the token budget then counts.
    """

    chunks: list[Chunk]
    question_vector: Vector | None = None
    read_neighbors: NeighborReader | None = None
    show: Show | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What reads neighbours often holds a connection; a copy in another process does without.
        return {**self.__dict__, "read_neighbors": None}
