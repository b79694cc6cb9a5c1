"""Where a run finds and keeps what is worth doing once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oprag.compare.records import FailedCall, Hit, Hits, IndexRecord, Piece, Reply
from oprag.methods.model_calls import Completion

__all__ = ["Keeper"]


class Keeper(Protocol):
    """Where a run finds and keeps what is worth doing once.

    All of it may be called from several threads.
    """

    def reply(self, key: str) -> Completion | None:
        """The reply with this address, if it is known."""
        ...

    def keep_replies(self, replies: Sequence[Reply]) -> list[Completion]:
        """Keep replies; when this returns, they outlive the process.

        Returns:
            The replies that are kept: of two processes that ask the same at the same time both get the first one.
        """
        ...

    def keep_failed_call(self, call: FailedCall) -> None:
        """Keep why a call failed."""
        ...

    def index(self, key: str) -> Sequence[Piece] | None:
        """The chunks of an index, if it is known."""
        ...

    def keep_index(self, index: IndexRecord) -> None:
        """Keep how documents were split."""
        ...

    def hits(self, key: str) -> Sequence[Hit] | None:
        """What was found, if it is known."""
        ...

    def keep_hits(self, found: Sequence[Hits]) -> None:
        """Keep what was found."""
        ...

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """The vector of each hash, None where there is none."""
        ...

    def keep_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep vectors, of shape (number of hashes, dimension)."""
        ...
