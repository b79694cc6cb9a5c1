"""A cache of vectors, in memory or in a file, so that no text is embedded twice."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from oprag._internal.files.fork_safe import ForkSafeLock
from oprag._internal.masking import describe, masked_error
from oprag.embedding.embedder import model_of
from oprag.errors import CacheError, EmbeddingError, OptionError
from oprag.options import check_count, check_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from oprag.embedding.cache_file import CacheFile

__all__ = ["Kind", "VectorCache", "text_keys"]

Kind = Literal["document", "question"]

_MAX_BYTES = 256 * 2**20
_ENTRY = 300  # overhead of an entry in bytes
# Its vector tells the models apart that were given the same namespace.
_PROBE = "The captain of the ship wrote a letter before she left port."


class VectorCache:
    """Cache of the vectors of texts, so that no text is embedded twice.

    In memory, vectors belong to the embedding model object that computed them, which is kept alive with them; another
    object is another model. A file keeps the vectors of documents under a namespace, so that later processes and other
    model objects find them. Questions stay in memory.

    The namespace is your promise that the vectors are those of one model with the same settings. To check it, each
    cache embeds one fixed sentence with each model object: if its vector is not the one in the file, the file is not
    used, and a `CacheWarning` says so.

    Texts are not stored, only their SHA-256 hashes. Threads can share a cache, and processes a file.

    Args:
        path: SQLite file, created on the first write. In memory by default.
        namespace: Name of the model and its settings in the file; required with `path`. Use a new one when the model
            changes.
        max_bytes: Maximum size in memory, in bytes; the least recently used vectors are evicted first. A file has no
            limit.

    Attributes:
        path: The file; None for a cache in memory.
        namespace: The namespace; None for a cache in memory.

    Raises:
        OptionError: `path` and `namespace` are not given together, or `max_bytes` is not an integer >= 1.

    Example:
        >>> from oprag import LocalEmbedder
        >>> cache, embedder = VectorCache(), LocalEmbedder()
        >>> cache.put(embedder, ["a text"], embedder.embed_documents(["a text"]))
        >>> [vector is not None for vector in cache.get(embedder, ["a text", "another"])]
        [True, False]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        namespace: str | None = None,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        check_count("max_bytes", max_bytes, optional=False)
        if path is None and namespace is not None:
            raise OptionError("namespace is for a cache file; pass path=... or remove it", namespace)
        check_text("namespace", namespace, optional=True)
        if path is not None and not (namespace or "").strip():
            raise OptionError(
                'a cache file requires a name for the embedding model and its settings; pass namespace="...", and a '
                "new one when the model changes",
                namespace,
            )
        self.path = None if path is None else Path(path)
        self.namespace = namespace
        self._max_bytes = max_bytes
        self._memory = _Memory(max_bytes)
        # By the id of a model, which stays alive, so that the id is not used again: the model and its probe's vector.
        self._probes: dict[int, tuple[Any, NDArray[np.float32]]] = {}

    @cached_property
    def _file(self) -> CacheFile | None:
        if self.path is None or self.namespace is None:
            return None
        # Imported here, since only a file needs NumPy and SQLite.
        from oprag.embedding.cache_file import CacheFile

        return CacheFile(self.path, self.namespace, *text_keys([_PROBE], "document"))

    def get(self, embedder: Any, texts: Sequence[str], kind: Kind = "document") -> list[NDArray[np.float32] | None]:
        """Return the vector of each text; None if it is missing or unusable.

        Args:
            embedder: The `oprag.Embedder`.
            texts: The texts.
            kind: Whether the texts are embedded as documents or as questions.

        Raises:
            CacheError: The file has vectors of another model under the namespace, is not a vector cache, is corrupt,
                or cannot be read.
        """
        keys = text_keys(texts, kind)
        if self._file is None or kind == "question":
            return self._memory.get(model_of(embedder), keys)
        return self._file.get(keys, self._probe(embedder)) if keys and self._file.exists() else [None] * len(keys)

    def put(self, embedder: Any, texts: Sequence[str], vectors: Any, kind: Kind = "document") -> None:
        """Store the vectors of texts: all of them, or none if an error is raised.

        Args:
            embedder: The `oprag.Embedder` that computed them.
            texts: The texts.
            vectors: Their vectors, of shape (number of texts, dimension).
            kind: Whether the texts were embedded as documents or as questions.

        Raises:
            CacheError: The vectors are not a matrix of numbers with a row for each text, a vector is not finite or all
                zeros, the file has vectors of another model under the namespace, or the file is not a vector cache, is
                corrupt, or cannot be written.
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
        keys = text_keys(texts, kind)
        if self._file is None or kind == "question":
            self._memory.put(model_of(embedder), keys, matrix)
        else:
            self._file.put(keys, matrix, self._probe(embedder))

    def _probe(self, embedder: Any) -> NDArray[np.float32]:
        """The vector of the probe, of shape (dimension,); embedded once with each model."""
        from oprag.embedding.cosine import usable_rows

        model = model_of(embedder)
        if id(model) not in self._probes:
            try:
                (vector,) = usable_rows(embedder.embed_documents([_PROBE]), [_PROBE], repr)
            except Exception as error:
                raise CacheError(
                    f"cannot check a cache file with the embedder {embedder.name}: {masked_error(error)}", None
                ) from error
            self._probes[id(model)] = model, vector
        return self._probes[id(model)][1]

    def delete(self, texts: Iterable[str]) -> int:
        """Delete the vectors of texts for all models and namespaces, both as documents and as questions.

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
        return self._delete([*text_keys(given, "document"), *text_keys(given, "question")])

    def clear(self) -> int:
        """Delete all vectors, in a file those of all namespaces; for a file, the data is also erased from disk.

        Returns:
            Number of deleted vectors.

        Raises:
            CacheError: The file is corrupt or cannot be written, or another process keeps it locked.
        """
        return self._delete(None)

    def _delete(self, keys: Sequence[bytes] | None) -> int:
        return self._memory.delete(keys) + (0 if self._file is None else self._file.delete(keys))

    def __len__(self) -> int:
        return self._memory.count() + (0 if self._file is None else self._file.count())

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> VectorCache:
        # Copies of a retriever share its cache.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled in another process: the same file, or an empty memory cache of the same size.
        return partial(type(self), namespace=self.namespace, max_bytes=self._max_bytes), (self.path,)


def text_keys(texts: Sequence[str], kind: Kind) -> list[bytes]:
    """Hashes of texts; the same text has different hashes as a question and as a document."""
    prefix, sha256 = f"{kind}\0".encode(), hashlib.sha256
    # Real texts sometimes contain lone surrogates.
    return [sha256(prefix + text.encode("utf-8", "surrogatepass")).digest() for text in texts]


class _Memory:
    """In-memory LRU cache of vectors; each keeps its model alive, so that the id of the model is not used again."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._vectors: OrderedDict[tuple[int, bytes], tuple[Any, NDArray[np.float32]]] = OrderedDict()
        self._bytes = 0
        self._lock = ForkSafeLock()

    def get(self, model: Any, keys: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        found: list[NDArray[np.float32] | None] = []
        with self._lock:
            for key in keys:
                known = self._vectors.get((id(model), key))
                if known is not None:
                    self._vectors.move_to_end((id(model), key))
                found.append(known and known[1])
        return found

    def put(self, model: Any, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        with self._lock:
            for key, row in zip(keys, vectors, strict=True):
                self._drop((id(model), key))
                # A copy, since a view would keep the whole matrix in memory.
                vector = row.copy()
                vector.flags.writeable = False
                self._vectors[id(model), key] = model, vector
                self._bytes += vector.nbytes + _ENTRY
                while self._bytes > self._max_bytes and len(self._vectors) > 1:
                    self._drop(next(iter(self._vectors)))

    def count(self) -> int:
        return len(self._vectors)

    def delete(self, keys: Sequence[bytes] | None) -> int:
        to_delete = None if keys is None else set(keys)
        with self._lock:
            deleted = [key for key in self._vectors if to_delete is None or key[1] in to_delete]
            for key in deleted:
                self._drop(key)
        return len(deleted)

    def _drop(self, key: tuple[int, bytes]) -> None:
        if (known := self._vectors.pop(key, None)) is not None:
            self._bytes -= known[1].nbytes + _ENTRY
