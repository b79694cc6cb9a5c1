"""Caches of the work that a run does once: replies, indexes, retrievals and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from oprag.compare.db.records import FailedCall, IndexRecord, Reply, Retrieval, StoredVector

__all__ = ["MemoryCache", "NoCache", "Record", "WorkCache"]

Record = TypeVar("Record", bound=Reply | FailedCall | IndexRecord | Retrieval | StoredVector)


class WorkCache(Protocol):
    """Stores work that is done once; threads may share it."""

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one."""
        ...

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Store records of one kind; in a file, they outlive the process when this returns.

        Returns:
            The stored records: of two processes that ask the same at the same time both get the first reply.
        """
        ...


class MemoryCache:
    """A `WorkCache` in memory, on top of another one, which is not written to."""

    def __init__(self, below: WorkCache | None = None) -> None:
        self._below = below or NoCache()
        self._records: dict[tuple[type, Any], Any] = {}

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one."""
        missing = [key for key in keys if (kind, key) not in self._records]
        below = dict(zip(missing, self._below.get(kind, missing), strict=True))
        return [self._records.get((kind, key), below.get(key)) for key in keys]

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Store records; return the stored ones."""
        return [self._records.setdefault((type(record), record.key), record) for record in records]


class NoCache:
    """A `WorkCache` that stores nothing, for measurements."""

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:  # noqa: ARG002
        """None for every key."""
        return [None] * len(keys)

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Return the records."""
        return list(records)
