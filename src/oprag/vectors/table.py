"""Tables of vectors by embedder and hash, in any database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["VECTOR_SCHEMA", "delete_vectors", "read_vectors", "write_vectors"]

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
    """The vector of each hash, None where it is missing, has another length or type, or values that are not finite."""
    found: dict[bytes, NDArray[np.float32]] = {}
    for part in _parts(hashes):
        query = (
            "SELECT hash, vector FROM embedders JOIN vectors ON embedder = number "  # noqa: S608
            "WHERE typeof(vector) = 'blob' AND typeof(dimension) = 'integer' AND length(vector) = dimension * ? "
            f"AND name = ? AND hash IN ({', '.join('?' * len(part))})"
        )
        for key, data in connection.execute(query, [_NUMBERS.itemsize, embedder, *part]):
            vector = np.frombuffer(data, dtype=_NUMBERS).astype(np.float32, copy=False)
            if np.isfinite(vector).all():
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
    # What is not a number in a damaged file becomes 0.
    select = "SELECT number, CAST(dimension AS INTEGER) FROM embedders WHERE name = ?"
    row = connection.execute(select, [embedder]).fetchone()
    if row is None:
        new = "INSERT INTO embedders (name, dimension) VALUES (?, ?) RETURNING number, dimension"
        row = connection.execute(new, [embedder, dimension]).fetchone()
    number, known = row
    if known == dimension:
        rows = ((number, key, row.astype(_NUMBERS).tobytes()) for key, row in zip(hashes, vectors, strict=True))
        connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
    return int(known)


def delete_vectors(connection: sqlite3.Connection, hashes: Sequence[bytes]) -> int:
    """Delete the vectors of all embedders under these hashes, in the caller's transaction; how many they were."""
    # An index by hash alone would cost every write; whoever deletes can wait.
    return sum(
        connection.execute(f"DELETE FROM vectors WHERE hash IN ({', '.join('?' * len(part))})", part).rowcount  # noqa: S608
        for part in _parts(hashes)
    )


def _parts(hashes: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (hashes[start : start + _AT_ONCE] for start in range(0, len(hashes), _AT_ONCE))
