"""What a context is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from oprag.assembly import ContextOptions
from oprag.chunk import Chunk, Vector
from oprag.errors import OptionError
from oprag.neighbors import NeighborReader
from oprag.place import Placed, place
from oprag.render import Show

__all__ = ["ContextInputs"]


@dataclass(frozen=True, eq=False)
class ContextInputs:
    """Everything that the assembly takes beside its options, so that it can be done again with others.

    Attributes:
        chunks: All chunks that were retrieved, best first.
        question_vector: The vector of the question, of shape (dimension,), where it is known.
        read_neighbors: Gives the chunks around one, where they can be had.
        show: Writes a passage as the framework will show it; what the token budget then counts.
        neighbors: What was read around chunks, by their rank and how much was asked for.
        placed: The chunks with their source and position, by what decides about these.
    """

    chunks: list[Chunk]
    question_vector: Vector | None = None
    read_neighbors: NeighborReader | None = None
    show: Show | None = None
    neighbors: dict[tuple[int, int], list[Chunk]] = field(default_factory=dict)
    placed: dict[Any, Placed] = field(default_factory=dict)

    @property
    def reader(self) -> Callable[[Chunk, int], Sequence[Chunk]] | None:
        """Gives the chunks around one, which are read once, however often the context is made again."""
        return None if self.read_neighbors is None and not self.neighbors else self._read

    def place(self, options: ContextOptions) -> Placed:
        """The chunks with their source and position, found once, however often the context is made again."""
        # Thresholds fill in the similarity, which contexts without them do not have.
        key = options.source_key, options.position_key, options.needs_vectors
        if key not in self.placed:
            self.placed[key] = place(self.chunks, options.source_key, options.position_key)
        return self.placed[key]

    def _read(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        key = chunk.rank, number
        if key not in self.neighbors:
            if self.read_neighbors is None:
                raise OptionError(
                    f"the neighbours of a chunk ({chunk.label()}) were not read before, and what reads them stayed in "
                    "another process",
                    number,
                )
            self.neighbors[key] = list(self.read_neighbors(chunk, number))
        return self.neighbors[key]

    def __getstate__(self) -> dict[str, Any]:
        # What reads neighbours often holds a connection; a copy in another process does without.
        return {**self.__dict__, "read_neighbors": None, "placed": {}}
