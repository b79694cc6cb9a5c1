"""Vectors that were made before, in memory or in a file, so that no text is embedded twice."""

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
_ENTRY = 300  # bytes that an entry takes beside the numbers of its vector


class VectorCache:
    """Vectors by embedder and text, so that no text is embedded twice.

    Texts are not kept, only their hashes (SHA-256). A cache may be shared by retrievers and threads, and a file by
    processes as well; what one of them has finished writing is there for all others, whatever happens to it. Threads
    and tasks that need the same text at the same time embed it once, waiting at most a minute for each other; processes
    do not wait.

    Args:
        path: A file (SQLite) that outlives the process; made when something is first kept. In memory by default.
        max_bytes: Maximum size in memory; the least recently used vectors are dropped first. A file has no limit.

    Attributes:
        path: The file, None for a cache in memory.
        in_flight: What is being embedded at the moment.

    Raises:
        OptionError: `max_bytes` is not a whole number from 1.

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
        """Where the vectors are."""
        if self.path is None:
            return self._memory
        # NumPy and SQLite are loaded where there is a file to read.
        from oprag.embedding.cache_file import CacheFile

        return CacheFile(self.path)

    def get(self, embedder: str, texts: Sequence[str], kind: Kind = "document") -> list[NDArray[np.float32] | None]:
        """The vector of each text; None if it is missing or unusable.

        Args:
            embedder: The identity of the embedder.
            texts: The texts that were embedded.
            kind: Whether they were embedded as documents or as questions.

        Raises:
            CacheError: The file is not a vector cache, is damaged, or cannot be read.
        """
        return self._vectors.get(embedder, text_keys(texts, kind))

    def put(self, embedder: str, texts: Sequence[str], vectors: Any, kind: Kind = "document") -> None:
        """Keep the vectors of texts: all of them, or none if anything is wrong.

        Args:
            embedder: The identity of the embedder.
            texts: The texts that were embedded.
            vectors: Their vectors, of shape (number of texts, dimension).
            kind: Whether they were embedded as documents or as questions.

        Raises:
            CacheError: The vectors are not a matrix of numbers with a row for each text, one is not finite or all
                zeros, they have another dimension than those of this embedder in the file, or the file is not a vector
                cache, is damaged, or cannot be written.
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
        return self._vectors.delete([*text_keys(given, "document"), *text_keys(given, "question")])

    def clear(self) -> int:
        """Forget all vectors; those in a file are removed from the disk.

        Returns:
            The number of vectors that were deleted.

        Raises:
            CacheError: The file is damaged or cannot be written, or another process is reading it all the time.
        """
        return self._vectors.delete(None)

    def __len__(self) -> int:
        return self._vectors.count()

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> VectorCache:
        # A copy of a retriever shares its cache.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process: the same file, or an empty cache of the same size.
        return partial(VectorCache, max_bytes=self._max_bytes), (self.path,)


def text_keys(texts: Sequence[str], kind: Kind) -> list[bytes]:
    """Hashes of texts, other ones for questions than for documents."""
    prefix, sha256 = f"{kind}\0".encode(), hashlib.sha256
    # Half of a surrogate pair is not a character, but occurs in texts in the wild.
    return [sha256(prefix + text.encode("utf-8", "surrogatepass")).digest() for text in texts]


class _Memory:
    """Vectors in memory, with the methods of `CacheFile`; the least recently used are dropped first."""

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
                # A copy: a view would keep all rows of the matrix.
                vector = self._vectors[embedder, key] = row.copy()
                vector.flags.writeable = False
                self._bytes += vector.nbytes + _ENTRY
                while self._bytes > self._max_bytes and len(self._vectors) > 1:
                    self._drop(next(iter(self._vectors)))

    def count(self) -> int:
        return len(self._vectors)

    def delete(self, hashes: Sequence[bytes] | None) -> int:
        wanted = None if hashes is None else set(hashes)
        with self._lock:
            gone = [key for key in self._vectors if wanted is None or key[1] in wanted]
            for key in gone:
                self._drop(key)
        return len(gone)

    def _drop(self, key: tuple[str, bytes]) -> None:
        if (vector := self._vectors.pop(key, None)) is not None:
            self._bytes -= vector.nbytes + _ENTRY
