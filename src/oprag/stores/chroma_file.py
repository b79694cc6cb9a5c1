"""Reads the file of a saved Chroma directly: its client writes to the folder, and crashes on some corrupt files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from oprag.errors import InputFileError
from oprag.stores.adapter import StoredChunk

__all__ = ["CHROMA_FILE", "ChromaFile"]

CHROMA_FILE = "chroma.sqlite3"

_TABLES = ("collections", "embedding_metadata", "embeddings", "segments")
_ROWS = """
    SELECT embeddings.id, embedding_id, key, coalesce(string_value, int_value, float_value)
    FROM embeddings LEFT JOIN embedding_metadata ON embedding_metadata.id = embeddings.id
    WHERE embeddings.segment_id IN (
        SELECT segments.id FROM segments JOIN collections ON segments.collection = collections.id
        WHERE collections.name = ? AND segments.scope = 'METADATA'
    )
    ORDER BY embeddings.id
"""
_TEXT = "chroma:document"
_MAX_BYTES = 100_000_000  # of a value; SQLite's own limit is 1,000,000,000


class ChromaFile:
    """The database file of Chroma 0.4 or later, opened read-only; an `InputFileError` if it is not one."""

    def __init__(self, path: Path) -> None:
        for companion in (path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm", "journal"))):
            # SQLite would block on a pipe.
            if companion.exists() and not companion.is_file():
                raise InputFileError(f"{companion} is not a regular file", str(companion))
        self._path = path
        self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_BYTES)
        self._connection.execute("PRAGMA trusted_schema = OFF")
        self._connection.execute("PRAGMA cell_size_check = ON")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def collections(self) -> list[str]:
        """Return the names of the collections."""
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables.issuperset(_TABLES):
            raise InputFileError(f"{self._path} is not a Chroma database (0.4 or later)", str(self._path))
        return [name for (name,) in self._connection.execute("SELECT DISTINCT name FROM collections ORDER BY name")]

    def chunks(self, collection: str) -> Iterator[StoredChunk]:
        """Yield the chunks of a collection in insertion order."""
        return map(_chunk, groupby(self._connection.execute(_ROWS, [collection]), itemgetter(0)))


def _chunk(grouped: tuple[int, Iterator[tuple[Any, ...]]]) -> StoredChunk:
    rows = list(grouped[1])
    metadata = {key: value for _, _, key, value in rows if isinstance(key, str)}
    text = metadata.pop(_TEXT, None)
    return StoredChunk(str(rows[0][1]), text if isinstance(text, str) else "", metadata)
