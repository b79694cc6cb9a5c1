"""Vectors in SQLite: the tables shared by vector caches and results files, and the file of a vector cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oprag._internal.files.database import Database, Format
from oprag.embedding.cosine import cosine
from oprag.errors import CacheError

__all__ = ["VECTOR_SCHEMA", "CacheFile", "read_vectors", "write_vectors"]

VECTOR_SCHEMA = """
    CREATE TABLE embedders (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
    CREATE TABLE vectors (embedder INTEGER NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL,
        PRIMARY KEY (embedder, hash)) WITHOUT ROWID;
"""
# Maximum number of parameters in a statement; SQLite before 3.32 limits them to 999.
_MAX_PARAMETERS = 500
_NUMBERS = np.dtype("<f4")


def read_vectors(
    connection: sqlite3.Connection, embedder: str, hashes: Sequence[bytes]
) -> list[NDArray[np.float32] | None]:
    """Read the vector of each hash; None if it is missing, malformed or not finite."""
    found: dict[bytes, NDArray[np.float32]] = {}
    for part in _batches(hashes):
        query = (
            "SELECT hash, vector FROM embedders JOIN vectors ON embedder = number "  # noqa: S608
            "WHERE typeof(vector) = 'blob' AND typeof(dimension) = 'integer' AND length(vector) = dimension * ? "
            f"AND name = ? AND hash IN ({_marks(part)})"
        )
        for key, data in connection.execute(query, [_NUMBERS.itemsize, embedder, *part]):
            vector = np.frombuffer(data, dtype=_NUMBERS).astype(np.float32, copy=False)
            if np.isfinite(vector).all():
                found[key] = vector
    return [found.get(key) for key in hashes]


def write_vectors(
    connection: sqlite3.Connection, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]
) -> int:
    """Write vectors in the caller's transaction; return the embedder's dimension, and write none if it is another."""
    dimension = vectors.shape[1]
    # CAST turns a value in a corrupt file that is not a number into 0.
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


def _marks(values: Sequence[bytes]) -> str:
    return ", ".join("?" * len(values))


def _batches(hashes: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (hashes[start : start + _MAX_PARAMETERS] for start in range(0, len(hashes), _MAX_PARAMETERS))


# The application id is "opRV". Writers wait only briefly for a lock, since caching is optional.
_CACHE = Format("vector cache", 0x6F705256, 1, VECTOR_SCHEMA, CacheError, "delete it; it is rebuilt", patience=5.0)


# Vectors of one model for the same text are not always equal to the last bit, on another processor or in another batch.
_SAME = 0.999


class CacheFile:
    """The file of a `VectorCache`: vectors by namespace and hash.

    The vector of a fixed text, the probe, tells whether the vectors of a namespace are those of the caller's model.
    """

    def __init__(self, path: Path, namespace: str, probe_key: bytes) -> None:
        self._database = Database(path, _CACHE)
        self.path = path
        self._namespace = namespace
        self._probe_key = probe_key

    def exists(self) -> bool:
        """Whether there is a file."""
        return self._database.exists()

    def get(self, hashes: Sequence[bytes], probe: NDArray[np.float32]) -> list[NDArray[np.float32] | None]:
        """Read the vector of each hash; None if it is missing or unusable."""
        with self._database.reading() as connection:
            known, *found = read_vectors(connection, self._namespace, [self._probe_key, *hashes])
        if known is None:
            # There is nothing, or nobody knows whose vectors these are.
            return [None] * len(hashes)
        self._check(known, probe)
        # A zero vector has no cosine similarity.
        return [vector if vector is not None and vector.any() else None for vector in found]

    def put(self, hashes: Sequence[bytes], vectors: NDArray[np.float32], probe: NDArray[np.float32]) -> None:
        """Write vectors in one transaction."""
        with self._database.writing() as connection:
            (known,) = read_vectors(connection, self._namespace, [self._probe_key])
            if known is None:
                numbers = "SELECT number FROM embedders WHERE name = ?"
                connection.execute(f"DELETE FROM vectors WHERE embedder IN ({numbers})", [self._namespace])  # noqa: S608
                connection.execute("DELETE FROM embedders WHERE name = ?", [self._namespace])
                write_vectors(connection, self._namespace, [self._probe_key], probe[None])
            else:
                self._check(known, probe)
            dimension = write_vectors(connection, self._namespace, hashes, vectors)
            if dimension != vectors.shape[1]:
                raise CacheError(
                    f"the embedder returned vectors of dimension {dimension} before, and now of {vectors.shape[1]}",
                    self.path,
                )

    def _check(self, known: NDArray[np.float32], probe: NDArray[np.float32]) -> None:
        """Reject the file if its vectors are those of another model."""
        if known.shape != probe.shape:
            what = f"of dimension {len(known)}, the embedder returned dimension {len(probe)}"
        elif (similarity := cosine(known, probe)) < _SAME:
            what = f"of another model: those of the same sentence have a cosine similarity of {similarity:.3f}"
        else:
            return
        raise CacheError(
            f"the vector cache {self.path} contains vectors {what}; use another namespace than {self._namespace!r}, "
            "one for each model",
            self.path,
        )

    def count(self) -> int:
        """Number of vectors in all namespaces, without those of the probe."""
        if not self.exists():
            return 0
        with self._database.reading() as connection:
            count = connection.execute("SELECT count(*) FROM vectors WHERE hash != ?", [self._probe_key])
            return int(count.fetchone()[0])

    def delete(self, hashes: Sequence[bytes] | None) -> int:
        """Delete the vectors with these hashes, or all if None, in all namespaces, and erase them from disk."""
        if not self.exists():
            return 0
        with self._database.writing() as connection:
            if hashes is not None:
                # Full scan: an index on the hash alone would slow down every write, and deletions are rare.
                deletes = [(f"DELETE FROM vectors WHERE hash IN ({_marks(part)})", part) for part in _batches(hashes)]  # noqa: S608
                deleted = sum(connection.execute(delete, part).rowcount for delete, part in deletes)
            else:
                connection.execute("DELETE FROM vectors WHERE hash = ?", [self._probe_key])
                deleted = connection.execute("DELETE FROM vectors").rowcount
                connection.execute("DELETE FROM embedders")
        self._database.erase()
        return deleted
