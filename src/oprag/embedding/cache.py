"""A cache of vectors, in memory or in a file, so that no text is embedded twice."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from oprag.embedding.single_flight import SingleFlight
from oprag.errors import CacheError, EmbeddingError, OptionError
from oprag.files.fork_safe import ForkSafeLock
from oprag.masking import describe
from oprag.options import check_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from oprag.embedding.cache_file import CacheFile

__all__ = ["Kind", "VectorCache", "text_keys"]

Kind = Literal["document", "question"]

_MAX_BYTES = 256 * 2**20
_ENTRY = 300  # overhead of an entry in bytes


class VectorCache:
    """Cache of vectors by embedder and text, so that no text is embedded twice.

    Texts are not stored, only their SHA-256 hashes. A cache can be shared by retrievers and threads, and a file by
    processes as well; vectors are visible to the others as soon as they are written. Threads and tasks that need the
    same text at the same time embed it once, and wait at most a minute for each other; processes do not wait.

    Args:
        path: SQLite file, created on the first write. In memory by default.
        max_bytes: Maximum size in memory, in bytes; the least recently used vectors are evicted first. A file has no
            limit.

    Attributes:
        path: The file; None for a cache in memory.
        in_flight: The texts that are currently being embedded.

    Raises:
        OptionError: `max_bytes` is not an integer >= 1.

    Example:
        >>> cache = VectorCache()
        >>> cache.put("my-model", ["a text"], [[0.6, 0.8]])
        >>> [None if vector is None else vector.tolist() for vector in cache.get("my-model", ["a text", "another"])]
        [[0.6000000238418579, 0.800000011920929], None]
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_bytes: int = _MAX_BYTES) -> None:
        check_count("max_bytes", max_bytes, optional=False)
        self.path = None if path is None else Path(path)
        self.in_flight = SingleFlight()
        self._max_bytes = max_bytes
        self._memory = _Memory(max_bytes)

    @cached_property
    def _vectors(self) -> _Memory | CacheFile:
        """The storage: memory or a file."""
        if self.path is None:
            return self._memory
        # Imported here, since only a file needs NumPy and SQLite.
        from oprag.embedding.cache_file import CacheFile

        return CacheFile(self.path)

    def get(self, embedder: str, texts: Sequence[str], kind: Kind = "document") -> list[NDArray[np.float32] | None]:
        """Return the vector of each text; None if it is missing or unusable.

        Args:
            embedder: Identity of the embedder.
            texts: The texts.
            kind: Whether the texts were embedded as documents or as questions.

        Raises:
            CacheError: The file is not a vector cache, is corrupt, or cannot be read.
        """
        return self._vectors.get(embedder, text_keys(texts, kind))

    def put(self, embedder: str, texts: Sequence[str], vectors: Any, kind: Kind = "document") -> None:
        """Store the vectors of texts: all of them, or none if an error is raised.

        Args:
            embedder: Identity of the embedder.
            texts: The texts.
            vectors: Their vectors, of shape (number of texts, dimension).
            kind: Whether the texts were embedded as documents or as questions.

        Raises:
            CacheError: The vectors are not a matrix of numbers with a row for each text, a vector is not finite or all
                zeros, the file contains vectors of this embedder with another dimension, or the file is not a vector
                cache, is corrupt, or cannot be written.
        """
        from oprag.embedding.cosine import as_matrix, fault_in

        if not texts:
            return
        try:
            matrix = as_matrix(vectors, len(texts), "the caller")
        except EmbeddingError as error:
            raise CacheError(f"{error}; no vector was stored", vectors) from error
        if (fault := fault_in(matrix)) is not None:
            raise CacheError(f"the vector of text {fault.row} {fault.text}; no vector was stored", vectors)
        self._vectors.put(embedder, text_keys(texts, kind), matrix)

    def delete(self, texts: Iterable[str]) -> int:
        """Delete the vectors of texts for all embedders, both as documents and as questions.

        For a file, the data is also erased from disk, which takes as long as copying the file, so pass all texts at
        once.

        Args:
            texts: The texts exactly as they were embedded; frameworks may add metadata to them.

        Returns:
            Number of deleted vectors.

        Raises:
            OptionError: `texts` is a single string, or contains something other than strings.
            CacheError: The file is corrupt or cannot be written, or another process keeps it locked.
        """
        if isinstance(texts, str):
            raise OptionError("texts must be a list of strings, got a string; pass [text]", texts)
        given: list[Any] = list(texts)
        if wrong := [text for text in given if not isinstance(text, str)]:
            raise OptionError(f"texts must be strings, got {describe(wrong[0])}", wrong[0])
        return self._vectors.delete([*text_keys(given, "document"), *text_keys(given, "question")])

    def clear(self) -> int:
        """Delete all vectors; for a file, the data is also erased from disk.

        Returns:
            Number of deleted vectors.

        Raises:
            CacheError: The file is corrupt or cannot be written, or another process keeps it locked.
        """
        return self._vectors.delete(None)

    def __len__(self) -> int:
        return self._vectors.count()

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> VectorCache:
        # Copies of a retriever share its cache.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled in another process: the same file, or an empty memory cache of the same size.
        return partial(VectorCache, max_bytes=self._max_bytes), (self.path,)


def text_keys(texts: Sequence[str], kind: Kind) -> list[bytes]:
    """Hashes of texts; the same text has different hashes as a question and as a document."""
    prefix, sha256 = f"{kind}\0".encode(), hashlib.sha256
    # Real texts sometimes contain lone surrogates.
    return [sha256(prefix + text.encode("utf-8", "surrogatepass")).digest() for text in texts]


class _Memory:
    """In-memory LRU cache of vectors, with the methods of `CacheFile`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._vectors: OrderedDict[tuple[str, bytes], NDArray[np.float32]] = OrderedDict()
        self._bytes = 0
        self._lock = ForkSafeLock()

    def get(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        with self._lock:
            found = [self._vectors.get((embedder, key)) for key in hashes]
            for key, vector in zip(hashes, found, strict=True):
                if vector is not None:
                    self._vectors.move_to_end((embedder, key))
            return found

    def put(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        with self._lock:
            for key, row in zip(hashes, vectors, strict=True):
                self._drop((embedder, key))
                # A copy, since a view would keep the whole matrix in memory.
                vector = self._vectors[embedder, key] = row.copy()
                vector.flags.writeable = False
                self._bytes += vector.nbytes + _ENTRY
                while self._bytes > self._max_bytes and len(self._vectors) > 1:
                    self._drop(next(iter(self._vectors)))

    def count(self) -> int:
        return len(self._vectors)

    def delete(self, hashes: Sequence[bytes] | None) -> int:
        to_delete = None if hashes is None else set(hashes)
        with self._lock:
            deleted = [key for key in self._vectors if to_delete is None or key[1] in to_delete]
            for key in deleted:
                self._drop(key)
        return len(deleted)

    def _drop(self, key: tuple[str, bytes]) -> None:
        if (vector := self._vectors.pop(key, None)) is not None:
            self._bytes -= vector.nbytes + _ENTRY
