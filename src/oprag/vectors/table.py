"""Tables of vectors by embedder and hash, in any database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["VECTOR_SCHEMA", "read_vectors", "write_vectors"]

VECTOR_SCHEMA = """
    CREATE TABLE embedders (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
    CREATE TABLE vectors (embedder INTEGER NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL,
        PRIMARY KEY (embedder, hash)) WITHOUT ROWID;
"""
# Values in one statement; SQLite's own limit was 999 for long.
_AT_ONCE = 500
_NUMBERS = np.dtype("<f4")


def read_vectors(
    connection: sqlite3.Connection, embedder: str, hashes: Sequence[bytes]
) -> list[NDArray[np.float32] | None]:
    """The vector of each hash, None where it is missing, has another length or values that are not finite."""
    found: dict[bytes, NDArray[np.float32]] = {}
    for part in _parts(hashes):
        query = (
            "SELECT hash, vector, dimension FROM embedders JOIN vectors ON embedder = number "  # noqa: S608
            f"WHERE name = ? AND hash IN ({', '.join('?' * len(part))})"
        )
        for key, data, dimension in connection.execute(query, [embedder, *part]):
            if (vector := _vector(data, dimension)) is not None:
                found[key] = vector
    return [found.get(key) for key in hashes]


def write_vectors(
    connection: sqlite3.Connection, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]
) -> int:
    """Write vectors, of shape (number of hashes, dimension), inside of the caller's transaction.

    Returns:
        The dimension of this embedder's vectors; where it is not that of the given ones, nothing was written.
    """
    dimension = vectors.shape[1]
    row = connection.execute("SELECT number, dimension FROM embedders WHERE name = ?", [embedder]).fetchone()
    if row is None:
        new = "INSERT INTO embedders (name, dimension) VALUES (?, ?) RETURNING number, dimension"
        row = connection.execute(new, [embedder, dimension]).fetchone()
    number, known = row
    if known == dimension:
        rows = ((number, key, row.astype(_NUMBERS).tobytes()) for key, row in zip(hashes, vectors, strict=True))
        connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
    return int(known)


def _parts(hashes: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (hashes[start : start + _AT_ONCE] for start in range(0, len(hashes), _AT_ONCE))


def _vector(data: Any, dimension: int) -> NDArray[np.float32] | None:
    if not isinstance(data, bytes) or len(data) != dimension * _NUMBERS.itemsize:
        return None
    vector = np.frombuffer(data, dtype=_NUMBERS).astype(np.float32, copy=False)
    return vector if np.isfinite(vector).all() else None
