"""Reading the file of a saved Chroma: its own client writes into the folder, and a damaged one can end the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from oprag.errors import InputFileError
from oprag.positions.insertion_order import StoredChunk

__all__ = ["CHROMA_FILE", "ChromaFile"]

CHROMA_FILE = "chroma.sqlite3"

_TABLES = ("collections", "embedding_metadata", "embeddings", "segments")
_ROWS = """
    SELECT embeddings.id AS row, embeddings.embedding_id AS name, embedding_metadata.*
    FROM embeddings LEFT JOIN embedding_metadata ON embedding_metadata.id = embeddings.id
    WHERE embeddings.segment_id IN (
        SELECT segments.id FROM segments JOIN collections ON segments.collection = collections.id
        WHERE collections.name = ? AND segments.scope = 'METADATA'
    )
    ORDER BY embeddings.id
"""
_TEXT = "chroma:document"
_VALUES = ("string_value", "int_value", "float_value", "bool_value")
_LONGEST = 100_000_000  # bytes of a value; SQLite's own limit is a thousand million


class ChromaFile:
    """The file of Chroma 0.4 or later, read and never written.

    Args:
        path: The file.

    Raises:
        InputFileError: It is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        for companion in (path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm", "journal"))):
            # SQLite would wait for the other end of a pipe.
            if companion.exists() and not companion.is_file():
                raise InputFileError(f"{companion} is not a regular file", str(companion))
        self._path = path
        self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)

        self._connection.row_factory = sqlite3.Row
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        self._connection.execute("PRAGMA trusted_schema = OFF")
        self._connection.execute("PRAGMA cell_size_check = ON")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def collections(self) -> list[str]:
        """The names of the collections.

        Raises:
            InputFileError: It is not a file of Chroma.
        """
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables.issuperset(_TABLES):
            raise InputFileError(f"{self._path} is not a database of Chroma 0.4 or later", str(self._path))
        return [name for (name,) in self._connection.execute("SELECT DISTINCT name FROM collections ORDER BY name")]

    def chunks(self, collection: str) -> Iterator[StoredChunk]:
        """The chunks of a collection, in the sequence of insertion."""
        found = self._connection.execute(_ROWS, [collection])
        return map(_chunk, groupby(found, lambda row: row["row"]))


def _chunk(grouped: tuple[Any, Iterator[sqlite3.Row]]) -> StoredChunk:
    name, text = "", ""
    metadata: dict[str, Any] = {}
    for row in grouped[1]:
        name = str(row["name"])
        # Old versions have no column for true and false, and later ones may have more.
        values = (row[kind] for kind in row.keys() if kind in _VALUES)  # noqa: SIM118 - a row has values
        value = next((value for value in values if value is not None), None)
        if row["key"] == _TEXT and isinstance(value, str):
            text = value
        elif isinstance(row["key"], str):
            metadata[row["key"]] = value
    return StoredChunk(name, text, metadata)
