"""A keeper that keeps nothing beyond the process."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from oprag.compare.keeper import Keeper
from oprag.compare.records import FailedCall, Hit, Hits, IndexRecord, Piece, Reply
from oprag.methods.model_calls import Completion

__all__ = ["MemoryKeeper"]


class MemoryKeeper:
    """Keeps everything in memory, on top of what another keeper knows; a `Keeper` itself.

    Args:
        below: Asked for what is not here.
        passing_on: Whether everything but replies is kept below.
    """

    def __init__(self, below: Keeper | None = None, *, passing_on: bool = False) -> None:
        self._below = below
        self._kept_below = below if passing_on else None
        self._replies: dict[str, Completion] = {}
        self._indexes: dict[str, Sequence[Piece]] = {}
        self._hits: dict[str, Sequence[Hit]] = {}
        self._vectors: dict[tuple[str, bytes], NDArray[np.float32]] = {}
        self._lock = Lock()

    def reply(self, key: str) -> Completion | None:
        """The reply with this address, if it is known."""
        known = self._replies.get(key)
        return known if known is not None or self._below is None else self._below.reply(key)

    def keep_replies(self, replies: Sequence[Reply]) -> list[Completion]:
        """Keep replies, and give those that are kept."""
        return [self._replies.setdefault(reply.key, reply.completion) for reply in replies]

    def keep_failed_call(self, call: FailedCall) -> None:
        """A call that failed is known by whoever made it, and by nobody else."""

    def index(self, key: str) -> Sequence[Piece] | None:
        """The chunks of an index, if it is known."""
        known = self._indexes.get(key)
        return known if known is not None or self._below is None else self._below.index(key)

    def keep_index(self, index: IndexRecord) -> None:
        """Keep how documents were split."""
        if self._kept_below is not None:
            self._kept_below.keep_index(index)
            return
        self._indexes[index.key] = index.pieces

    def hits(self, key: str) -> Sequence[Hit] | None:
        """What was found, if it is known."""
        known = self._hits.get(key)
        return known if known is not None or self._below is None else self._below.hits(key)

    def keep_hits(self, found: Sequence[Hits]) -> None:
        """Keep what was found."""
        if self._kept_below is not None:
            self._kept_below.keep_hits(found)
            return
        self._hits |= {one.key: one.hits for one in found}

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """The vector of each hash, None where there is none."""
        with self._lock:
            found = [self._vectors.get((embedder, key)) for key in hashes]
        if self._below is None or all(vector is not None for vector in found):
            return found
        below = self._below.vectors(embedder, hashes)
        return [other if vector is None else vector for vector, other in zip(found, below, strict=True)]

    def keep_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep vectors, of shape (number of hashes, dimension)."""
        if self._kept_below is not None:
            self._kept_below.keep_vectors(embedder, hashes, vectors)
            return
        with self._lock:
            self._vectors |= {(embedder, key): row for key, row in zip(hashes, vectors, strict=True)}
