"""Where a run finds and keeps what is worth doing once."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oprag.compare.db.records import FailedCall, Hit, IndexRecord, Piece, Reply, Retrieval
from oprag.methods.model_calls import Completion

__all__ = ["MemoryCache", "NoCache", "WorkCache"]


class WorkCache(Protocol):
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

    def keep_hits(self, found: Sequence[Retrieval]) -> None:
        """Keep what was found."""
        ...

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """The vector of each hash, None where there is none."""
        ...

    def keep_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep vectors, of shape (number of hashes, dimension)."""
        ...


class MemoryCache:
    """Keeps everything in memory, on top of what another keeper knows; a `WorkCache` itself.

    Args:
        below: Asked for what is not here.
        passing_on: Whether everything but replies is kept below.
    """

    def __init__(self, below: WorkCache | None = None, *, passing_on: bool = False) -> None:
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

    def keep_hits(self, found: Sequence[Retrieval]) -> None:
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


class NoCache:
    """Keeps nothing; a `WorkCache`."""

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

    def keep_hits(self, found: Sequence[Retrieval]) -> None:
        """Forget them."""

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:  # noqa: ARG002
        """No vector is known."""
        return [None] * len(hashes)

    def keep_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Forget them."""
