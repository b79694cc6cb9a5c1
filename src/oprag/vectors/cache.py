"""A cache of vectors, in memory or in a file."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from oprag.checks import check_count
from oprag.errors import CacheError, OptionError
from oprag.masking import describe
from oprag.vectors.flights import Flights
from oprag.vectors.fork_safe import ForkSafeLock

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from oprag.vectors.cache_file import CacheFile

__all__ = ["Kind", "VectorCache", "text_keys"]

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

        from oprag.vectors.rows import fault_in

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
                from oprag.vectors.cache_file import CacheFile

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
