"""Caches of the work that a run does once: replies, indexes, retrievals and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
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
    """A `WorkCache` in memory, on top of another one.

    Args:
        below: Has the records that are not in memory.
        write_through: Whether to store everything but replies below.
    """

    def __init__(self, below: WorkCache | None = None, *, write_through: bool = False) -> None:
        self._below = below
        self._write_through = write_through
        self._records: dict[tuple[type, Any], Any] = {}
        self._lock = Lock()

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one."""
        with self._lock:
            found: list[Record | None] = [self._records.get((kind, key)) for key in keys]
        missing = [key for key, record in zip(keys, found, strict=True) if record is None]
        if self._below is None or not missing:
            return found
        below = iter(self._below.get(kind, missing))
        return [next(below) if record is None else record for record in found]

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Store records; return the stored ones."""
        if self._below is not None and self._write_through and not isinstance(records[0], Reply | FailedCall):
            return self._below.put(records)
        with self._lock:
            return [self._records.setdefault((type(record), record.key), record) for record in records]


class NoCache:
    """A `WorkCache` that stores nothing, for measurements."""

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:  # noqa: ARG002
        """None for every key."""
        return [None] * len(keys)

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Return the records."""
        return list(records)
