"""Vectors as rows of numbers, checked, with a word for where they came from."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk
from oprag.embedding.flights import Flights
from oprag.errors import CacheError, EmbeddingError, OptionError
from oprag.files.database import Database, Format
from oprag.files.fork_safe import ForkSafeLock
from oprag.masking import describe
from oprag.options import check_count

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "VECTOR_SCHEMA",
    "CacheFile",
    "Kind",
    "Known",
    "VectorCache",
    "check_rows",
    "delete_vectors",
    "fault_in",
    "name_of",
    "read_vectors",
    "rows_of",
    "text_keys",
    "write_vectors",
]


class Known(NamedTuple):
    """A vector, and where it came from.

    Attributes:
        vector: The vector, of shape (dimension,).
        origin: The embedder, the store or the cache, in words for messages.
    """

    vector: NDArray[np.float32]
    origin: str


def rows_of(given: Any, count: int, origin: str, what: str = "vectors") -> NDArray[np.float32]:
    """Vectors as a float32 matrix of shape (count, dimension).

    Raises:
        EmbeddingError: They are of another number, of different dimensions, or no numbers.
    """
    try:
        with np.errstate(over="ignore"):
            rows = np.array(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{origin} gave {what} that form no matrix of numbers: {error}", given) from error
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise EmbeddingError(
            f"{origin} was asked for {count} {'vector' if count == 1 else 'vectors'} and gave an array of shape "
            f"{rows.shape}",
            given,
        )
    return rows


def name_of(value: Chunk | str) -> str:
    """What a vector belongs to, in words."""
    return f"a chunk ({value.label()})" if isinstance(value, Chunk) else "the question"


def check_rows(rows: NDArray[np.float32], values: Sequence[Chunk | str], origin: str) -> None:
    """Refuse vectors that have no cosine.

    Args:
        rows: Vectors, of shape (count, dimension).
        values: The chunk or the question that each belongs to.
        origin: Where they came from.

    Raises:
        EmbeddingError: A vector is not finite, or all zeros.
    """
    if (fault := fault_in(rows)) is not None:
        value = values[fault.row]
        raise EmbeddingError(f"the vector of {name_of(value)} from {origin} {fault.text}", value)


class Fault(NamedTuple):
    """Why a row has no cosine.

    Attributes:
        row: Its number.
        text: What is wrong with it.
    """

    row: int
    text: str


def fault_in(rows: NDArray[np.float32]) -> Fault | None:
    """The first row that has no cosine, None where all of them have one."""
    largest = np.abs(rows).max(axis=1)
    for row in np.flatnonzero(~(np.isfinite(largest) & (largest > 0))).tolist():
        zeros = largest[row] == 0
        return Fault(row, "is all zeros, so it has no cosine" if zeros else "has values that are not finite")
    return None


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


Kind = Literal["document", "question"]

_MAX_BYTES = 256 * 2**20
_ENTRY = 300  # bytes that an entry takes beside the numbers of its vector


class VectorCache:
    """Vectors by embedder and text, so that no text is embedded twice.

    Texts are not kept, only their hashes (SHA-256). A cache may be shared by retrievers and threads, and a file by
    processes as well; what one of them has finished writing is there for all others, whatever happens to it. Threads
    and tasks that need the same text at the same time embed it once, waiting at most a minute for each other; processes
    do not wait.

    Args:
        path: A file (SQLite) that outlives the process; made when something is first kept. In memory by default.
        max_bytes: In memory, how many bytes to keep; the longest unused vectors go first. A file has no bound.

    Attributes:
        flights: What is being embedded at the moment.

    Raises:
        OptionError: `max_bytes` is no whole number from 1.

    Example:
        >>> cache = VectorCache()
        >>> cache.put("my-model", ["a text"], [[0.6, 0.8]])
        >>> [None if vector is None else vector.tolist() for vector in cache.get("my-model", ["a text", "another"])]
        [[0.6000000238418579, 0.800000011920929], None]
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_bytes: int = _MAX_BYTES) -> None:
        check_count("max_bytes", max_bytes, optional=False)
        self._path = None if path is None else os.fspath(path)
        self._max_bytes = max_bytes
        self._opened: CacheFile | None = None
        self._vectors: OrderedDict[tuple[str, bytes], NDArray[np.float32]] = OrderedDict()
        self._bytes = 0
        self._lock = ForkSafeLock()
        self.flights = Flights()

    @property
    def path(self) -> Path | None:
        """The file, None for a cache in memory."""
        from pathlib import Path

        return None if self._path is None else Path(self._path)

    def get(self, embedder: str, texts: Sequence[str], kind: Kind = "document") -> list[NDArray[np.float32] | None]:
        """The vector of each text, None where there is none that can be used.

        Args:
            embedder: The identity of the embedder.
            texts: The texts that were embedded.
            kind: Whether they were embedded as documents or as questions.

        Raises:
            CacheError: The file is no vector cache, is damaged, or cannot be read.
        """
        keys = text_keys(texts, kind)
        if self._path is not None:
            return self._file().get(embedder, keys)
        with self._lock:
            found = [self._vectors.get((embedder, key)) for key in keys]
            for key, vector in zip(keys, found, strict=True):
                if vector is not None:
                    self._vectors.move_to_end((embedder, key))
            return found

    def put(self, embedder: str, texts: Sequence[str], vectors: Any, kind: Kind = "document") -> None:
        """Keep the vectors of texts: all of them, or none if anything is wrong.

        Args:
            embedder: The identity of the embedder.
            texts: The texts that were embedded.
            vectors: Their vectors, of shape (number of texts, dimension).
            kind: Whether they were embedded as documents or as questions.

        Raises:
            CacheError: A vector is not finite or all zeros, the vectors have another dimension than those of this
                embedder in the file, or the file is no vector cache, is damaged, or cannot be written.
        """
        import numpy as np

        try:
            # A value that is too large for float32 becomes infinite, and is refused below.
            with np.errstate(over="ignore"):
                matrix = np.array(vectors, dtype=np.float32, ndmin=2)
        except (TypeError, ValueError) as error:
            raise CacheError(f"vectors must be a matrix of numbers: {error}", vectors) from error
        if not texts:
            return
        if matrix.ndim != 2 or matrix.shape[0] != len(texts) or not matrix.shape[1]:
            raise CacheError(f"expected {len(texts)} vectors to keep, got an array of shape {matrix.shape}", vectors)
        if (fault := fault_in(matrix)) is not None:
            raise CacheError(f"the vector of text {fault.row} {fault.text}; no vector was stored", vectors)
        keys = text_keys(texts, kind)
        if self._path is not None:
            self._file().put(embedder, keys, matrix)
            return
        with self._lock:
            for key, row in zip(keys, matrix, strict=True):
                self._keep((embedder, key), row.copy())

    def delete(self, texts: Iterable[str]) -> int:
        """Forget the vectors of texts, of every embedder, as documents and as questions.

        In a file they are removed from the disk, too, which takes as long as copying the file: give all texts at once.

        Args:
            texts: The texts as they were embedded; a framework may have put metadata into them.

        Returns:
            The number of vectors that were deleted.

        Raises:
            OptionError: One text is given in place of several, or something that is not a text.
            CacheError: The file is damaged or cannot be written, or another process is reading it all the time.
        """
        if isinstance(texts, str):
            raise OptionError("texts must be several texts, got one; give [text]", texts)
        given: list[Any] = list(texts)
        if wrong := [text for text in given if not isinstance(text, str)]:
            raise OptionError(f"texts must be strings, got {describe(wrong[0])}", wrong[0])
        return self._delete([*text_keys(given, "document"), *text_keys(given, "question")])

    def clear(self) -> int:
        """Forget all vectors; those in a file are removed from the disk.

        Returns:
            The number of vectors that were deleted.

        Raises:
            CacheError: The file is damaged or cannot be written, or another process is reading it all the time.
        """
        return self._delete(None)

    def __len__(self) -> int:
        if self._path is not None:
            return self._file().count()
        with self._lock:
            return len(self._vectors)

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> VectorCache:
        # What is copied with a retriever is its use of the cache.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process: the same file, or an empty cache of the same size.
        return _again, (self._path, self._max_bytes)

    def _delete(self, keys: Sequence[bytes] | None) -> int:
        if self._path is not None:
            return self._file().delete(keys)
        wanted = None if keys is None else set(keys)
        with self._lock:
            gone = [key for key in self._vectors if wanted is None or key[1] in wanted]
            self._bytes -= sum(_size(self._vectors.pop(key)) for key in gone)
        return len(gone)

    def _file(self) -> CacheFile:
        with self._lock:
            if self._opened is None:
                # NumPy and SQLite are loaded for who has a cache to read.

                self._opened = CacheFile(self._path or "")
            return self._opened

    def _keep(self, key: tuple[str, bytes], vector: NDArray[np.float32]) -> None:
        vector.flags.writeable = False
        before = self._vectors.pop(key, None)
        self._bytes += _size(vector) - (0 if before is None else _size(before))
        self._vectors[key] = vector
        while self._bytes > self._max_bytes and len(self._vectors) > 1:
            _, oldest = self._vectors.popitem(last=False)
            self._bytes -= _size(oldest)


def _again(path: str | None, max_bytes: int) -> VectorCache:
    return VectorCache(path, max_bytes=max_bytes)


def _size(vector: NDArray[np.float32]) -> int:
    return vector.nbytes + _ENTRY


def text_keys(texts: Sequence[str], kind: Kind) -> list[bytes]:
    """What texts are kept under: hashes, other ones for questions than for documents."""
    sort, sha256 = f"{kind}\0".encode(), hashlib.sha256
    # Half of a surrogate pair is no character, and yet stands in texts in the wild.
    return [sha256(sort + text.encode("utf-8", "surrogatepass")).digest() for text in texts]
