"""The file behind a cache of vectors: SQLite, so that processes can share it and a kill loses nothing finished."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oprag.database import Database, Format
from oprag.errors import CacheError
from oprag.vectors.table import VECTOR_SCHEMA, delete_vectors, read_vectors, write_vectors

__all__ = ["CacheFile"]

# The application id is "opRV". Threads that want to write wait one after another, and can do without.
_CACHE = Format("vector cache", 0x6F705256, 1, VECTOR_SCHEMA, CacheError, "delete it, it fills again", patience=5.0)


class CacheFile:
    """Vectors by embedder and hash.

    Args:
        path: The file; it is made when it is first used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = Database(path, _CACHE)
        self.path = self._database.path

    def get(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """The vector of each hash, None where there is none that can be used.

        Raises:
            CacheError: The file is damaged or cannot be read.
        """
        if not self._database.exists():
            return [None] * len(hashes)
        with self._database.reading() as connection:
            found = read_vectors(connection, embedder, hashes)
        # Zeros have no cosine.
        return [vector if vector is not None and vector.any() else None for vector in found]

    def put(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Write vectors in one transaction.

        Raises:
            CacheError: There are vectors of this embedder with another dimension, or the file cannot be written.
        """
        with self._database.writing() as connection:
            known = write_vectors(connection, embedder, hashes, vectors)
            if known != vectors.shape[1]:
                raise CacheError(
                    f"the vector cache {self.path} has vectors of dimension {known} for the embedder {embedder!r}, got "
                    f"dimension {vectors.shape[1]}; give another model another name, or use another file",
                    self.path,
                )

    def count(self) -> int:
        """How many vectors there are.

        Raises:
            CacheError: The file is damaged or cannot be read.
        """
        if not self._database.exists():
            return 0
        with self._database.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def delete(self, hashes: Sequence[bytes] | None) -> int:
        """Delete the vectors under these hashes, all of them for None, from the disk as well; how many they were.

        Raises:
            CacheError: The file is damaged or cannot be written, or another process is reading it all the time.
        """
        if not self._database.exists():
            return 0
        with self._database.writing() as connection:
            if hashes is not None:
                deleted = delete_vectors(connection, hashes)
            else:
                deleted = connection.execute("DELETE FROM vectors").rowcount
                connection.execute("DELETE FROM embedders")
        self._database.erase()
        return deleted
