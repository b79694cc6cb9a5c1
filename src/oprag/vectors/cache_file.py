"""The file behind a cache of vectors: SQLite, so that processes can share it and a kill loses nothing finished."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oprag.errors import CacheError
from oprag.vectors.fork_safe import ForkSafeLock

__all__ = ["CacheFile"]

# "opRV", so that no other program's database is taken for a cache.
_APPLICATION = 0x6F705256
_FORMAT = 1
_SCHEMA = f"""
    CREATE TABLE embedders (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
    CREATE TABLE vectors (embedder INTEGER NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL,
        PRIMARY KEY (embedder, hash)) WITHOUT ROWID;
    PRAGMA application_id = {_APPLICATION};
    PRAGMA user_version = {_FORMAT};
"""
# Values in one statement; SQLite's own limit was 999 for long.
_AT_ONCE = 500
_PATIENCE = 60.0  # seconds to wait for another process that writes
_NUMBERS = np.dtype("<f4")


class CacheFile:
    """Vectors by embedder and hash.

    Args:
        path: The file; it is made when it is first used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = ForkSafeLock()
        self._connection: sqlite3.Connection | None = None
        # The process and the file on the disk that the connection belongs to.
        self._belongs_to: tuple[int, ...] = ()

    def get(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """The vector of each hash, None where there is none.

        Raises:
            CacheError: The file is damaged or cannot be read.
        """
        if not self.path.exists():
            return [None] * len(hashes)
        with self._lock, self._opened("read") as connection:
            row = connection.execute("SELECT number, dimension FROM embedders WHERE name = ?", [embedder]).fetchone()
            if row is None:
                return [None] * len(hashes)
            number, dimension = row
            found: dict[bytes, bytes] = {}
            for start in range(0, len(hashes), _AT_ONCE):
                part = hashes[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(part))
                query = f"SELECT hash, vector FROM vectors WHERE embedder = ? AND hash IN ({marks})"  # noqa: S608
                found.update(connection.execute(query, [number, *part]).fetchall())
        return [self._vector(found.get(key), dimension) for key in hashes]

    def put(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Write vectors in one transaction.

        Raises:
            CacheError: There are vectors of this embedder with another dimension, or the file cannot be written.
        """
        dimension = vectors.shape[1]
        with self._lock, self._opened("write") as connection, _transaction(connection):
            connection.execute("INSERT OR IGNORE INTO embedders (name, dimension) VALUES (?, ?)", [embedder, dimension])
            number, known = connection.execute(
                "SELECT number, dimension FROM embedders WHERE name = ?", [embedder]
            ).fetchone()
            if known != dimension:
                raise CacheError(
                    f"the vector cache {self.path} has vectors of dimension {known} for the embedder {embedder!r}, got "
                    f"dimension {dimension}; give another model another name, or use another file",
                    self.path,
                )
            rows = ((number, key, row.astype(_NUMBERS).tobytes()) for key, row in zip(hashes, vectors, strict=True))
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def count(self) -> int:
        """How many vectors there are.

        Raises:
            CacheError: The file is damaged or cannot be read.
        """
        if not self.path.exists():
            return 0
        with self._lock, self._opened("read") as connection:
            return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def _vector(self, data: bytes | None, dimension: int) -> NDArray[np.float32] | None:
        if data is None:
            return None
        if len(data) != dimension * _NUMBERS.itemsize:
            raise self._damaged(f"a vector has {len(data)} bytes, {dimension * _NUMBERS.itemsize} are expected")
        vector = np.frombuffer(data, dtype=_NUMBERS).astype(np.float32, copy=False)
        if not np.isfinite(vector).all():
            raise self._damaged("a vector has values that are not finite")
        return vector

    @contextmanager
    def _opened(self, purpose: str) -> Iterator[sqlite3.Connection]:
        try:
            # Neither behind a fork nor over a file that was deleted is a connection good for anything.
            if self._connection is None or self._belongs_to != self._place():
                self._connection = self._connect(purpose)
                self._belongs_to = self._place()
            yield self._connection
        except sqlite3.OperationalError as error:
            missing = "" if self.path.parent.is_dir() else "; its folder does not exist"
            raise CacheError(f"cannot {purpose} the vector cache {self.path}: {error}{missing}", self.path) from error
        except sqlite3.DatabaseError as error:
            # The file may be deleted now, and made anew.
            self._connection = None
            raise self._damaged(str(error)) from error

    def _place(self) -> tuple[int, ...]:
        """What tells this file and this process from others; nothing where there is no file."""
        try:
            about = self.path.stat()
        except OSError:
            return ()
        return os.getpid(), about.st_dev, about.st_ino

    def _connect(self, purpose: str) -> sqlite3.Connection:
        try:
            return self._connected(str(self.path), uri=False)
        except sqlite3.OperationalError:
            if purpose != "read":
                raise
            # A file that comes with an image or lies on a medium that cannot be written.
            return self._connected(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)

    def _connected(self, target: str, *, uri: bool) -> sqlite3.Connection:
        # Transactions are begun and ended here, not by the sqlite3 module.
        connection = sqlite3.connect(target, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=uri)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        weakref.finalize(self, _close, connection, os.getpid())
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check whose file it is; make the tables in a new one."""
        if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            # Readers then never wait for a writer, and a writer that is killed leaves nothing half-done.
            connection.execute("PRAGMA journal_mode = WAL")
            with _transaction(connection):
                # Another process may have been faster.
                if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    for statement in filter(str.strip, _SCHEMA.split(";")):
                        connection.execute(statement)
        connection.execute("PRAGMA synchronous = NORMAL")
        ((application,), (version,)) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != _APPLICATION:
            raise CacheError(f"{self.path} is no vector cache, but another SQLite database", self.path)
        if version != _FORMAT:
            raise CacheError(
                f"the vector cache {self.path} has format {version}, this version of oprag reads format {_FORMAT}",
                self.path,
            )

    def _damaged(self, reason: str) -> CacheError:
        return CacheError(
            f"the vector cache {self.path} is no vector cache, or is damaged ({reason}); delete it, it fills again",
            self.path,
        )


def _close(connection: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
