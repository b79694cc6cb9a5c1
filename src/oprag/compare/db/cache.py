"""Caches for work that is not repeated: replies, indexes and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from oprag.compare.db.records import FailedCall, IndexRecord, Reply, VectorRecord

__all__ = ["MemoryCache", "Record", "WorkCache"]

Record = TypeVar("Record", bound=Reply | FailedCall | IndexRecord | VectorRecord)


class WorkCache(Protocol):
    """Cache for work that is not repeated; safe to share between threads. See `ResultsFile`."""

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]: ...  # noqa: D102

    def put(self, records: Sequence[Record]) -> list[Record]: ...  # noqa: D102


class MemoryCache:
    """A `WorkCache` in memory over another one, which is only read."""

    def __init__(self, below: WorkCache | None = None) -> None:
        self._below = below
        self._records: dict[tuple[type, Any], Any] = {}

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one."""
        missing = [key for key in keys if (kind, key) not in self._records]
        found = dict(zip(missing, self._below.get(kind, missing), strict=True)) if self._below is not None else {}
        return [self._records.get((kind, key), found.get(key)) for key in keys]

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Store records; return the stored ones."""
        return [self._records.setdefault((type(record), record.key), record) for record in records]
