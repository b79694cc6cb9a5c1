"""A position, and how it is known."""

from enum import IntEnum
from typing import NamedTuple

from oprag.values import Key

__all__ = ["NOWHERE", "Position", "PositionKind"]


class PositionKind(IntEnum):
    """How a position is known, best first."""

    KEY = 0
    """Named by the caller with `position_key`."""
    STAMPED = 1
    """An ordinal stamped at ingestion, such as `chunk_index`."""
    PAGE_OFFSET = 2
    """A page, and a character offset on it."""
    OFFSET = 3
    """A character offset."""
    LINKS = 4
    """PREVIOUS/NEXT links, as far as they connect."""
    PAGE = 5
    """A page, a row or another single number that several chunks may share."""
    NONE = 6
    """Nothing: `on_missing_position` says where such a chunk stands."""


class Position(NamedTuple):
    """Where a chunk stands in its source.

    Attributes:
        key: Sorts the chunks of one source; empty when nothing is known. Comparable inside one source alone.
        kind: How it is known.
        field: The metadata keys that it was read from.
    """

    key: Key
    kind: PositionKind
    field: str = ""

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return self.kind is not PositionKind.NONE


NOWHERE = Position((), PositionKind.NONE)
"""What a chunk has of which nothing is known."""
