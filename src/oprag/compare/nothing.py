"""A keeper for who measures: it knows nothing, so everything is done again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oprag.compare.records import FailedCall, Hit, Hits, IndexRecord, Piece, Reply
from oprag.methods.model_calls import Completion

__all__ = ["KeepsNothing"]


class KeepsNothing:
    """Keeps nothing; a `Keeper`."""

    def reply(self, key: str) -> Completion | None:  # noqa: ARG002
        """No reply is known."""
        return None

    def keep_replies(self, replies: Sequence[Reply]) -> list[Completion]:
        """Forget them."""
        return [reply.completion for reply in replies]

    def keep_failed_call(self, call: FailedCall) -> None:
        """Forget it."""

    def index(self, key: str) -> Sequence[Piece] | None:  # noqa: ARG002
        """No index is known."""
        return None

    def keep_index(self, index: IndexRecord) -> None:
        """Forget it."""

    def hits(self, key: str) -> Sequence[Hit] | None:  # noqa: ARG002
        """Nothing was found before."""
        return None

    def keep_hits(self, found: Sequence[Hits]) -> None:
        """Forget them."""

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:  # noqa: ARG002
        """No vector is known."""
        return [None] * len(hashes)

    def keep_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Forget them."""
