"""Caches for work that is not repeated: replies, indexes, retrievals and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from oprag.compare.db.records import FailedCall, IndexRecord, Reply, Retrieval, VectorRecord

__all__ = ["MemoryCache", "NoCache", "Record", "WorkCache"]

Record = TypeVar("Record", bound=Reply | FailedCall | IndexRecord | Retrieval | VectorRecord)


class WorkCache(Protocol):
    """Cache for work that is not repeated; safe to share between threads."""

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one."""
        ...

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Store records of one kind; records written to a file survive a crash of the process once this returns.

        Returns:
            The stored records. If two processes make the same call at the same time, both get the first reply.
        """
        ...


class MemoryCache:
    """A `WorkCache` in memory over another one, which is only read."""

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
    """A no-op `WorkCache` for measurements."""

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:  # noqa: ARG002
        """Return None for every key."""
        return [None] * len(keys)

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Return the records."""
        return list(records)
