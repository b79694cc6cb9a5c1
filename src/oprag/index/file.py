"""The file of a saved index: written atomically, and read without pickle in bounded memory."""

from __future__ import annotations

import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from oprag.embedding.embedder import Embedder
from oprag.errors import EmbeddingError, IndexFileError
from oprag.files.writing import replacing
from oprag.masking import describe

__all__ = ["REBUILD", "Contents", "read_index", "write_index"]

REBUILD = "; rebuild the index"
"""What to do about a file that cannot be used, for messages."""

_FORMAT = 1
_MEMBERS = {"header.npy", "vectors.npy"}


class Contents(NamedTuple):
    """The texts, metadata and vectors of the chunks."""

    texts: list[str]
    metadata: list[dict[str, Any]]
    vectors: NDArray[np.float32]


def write_index(path: Path, embedder: str | None, contents: Contents, *, private: bool = False) -> None:
    """Write an index file; an existing file is replaced atomically."""
    header = {
        "format": _FORMAT,
        "embedder": embedder,
        "texts": contents.texts,
        "metadata": contents.metadata,
    }
    try:
        # No ASCII escapes: two lone surrogates would be read back as the character that they form together.
        encoded = json.dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise IndexFileError(f"cannot save metadata that JSON cannot represent: {error}", path) from error
    changed = next(
        (data for data in contents.metadata if json.loads(json.dumps(data, ensure_ascii=False)) != data), None
    )
    if changed is not None:
        raise IndexFileError(f"cannot save metadata that JSON would change: {describe(changed)}", path)
    with replacing(path, private=private) as file:
        np.savez(file, header=np.frombuffer(encoded, dtype=np.uint8), vectors=contents.vectors, allow_pickle=False)


def read_index(file: BinaryIO, path: Path, embedder: Embedder | None) -> Contents:
    """Read an index file, checking that it was created with this embedder.

    Memory use is bounded by the file size, because compressed files are rejected.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = _members(archive, file.seek(0, os.SEEK_END))
            characters = _array(archive, members["header.npy"], "u", dimensions=1)
            vectors = _array(archive, members["vectors.npy"], "fiu", dimensions=2)
        header = json.loads(characters.tobytes().decode("utf-8", "surrogatepass"))
        version, made_with, lists = header["format"], header["embedder"], (header["texts"], header["metadata"])
    except Exception as error:
        raise IndexFileError(f"{path} is not a saved index, or is corrupt: {error}{REBUILD}", path) from error
    if version != _FORMAT:
        fix = "; upgrade oprag: pip install -U oprag" if type(version) is int and version > _FORMAT else REBUILD
        raise IndexFileError(f"{path} has format {describe(version)}, expected {_FORMAT}{fix}", path)
    kinds = zip(lists, (str, dict), strict=True)
    if not isinstance(made_with, str | None) or not all(_is_list_of(kind, part) for part, kind in kinds):
        raise IndexFileError(f"{path} is corrupt: it has no lists of texts and metadata{REBUILD}", path)
    if not len(lists[0]) == len(lists[1]) == len(vectors):
        raise IndexFileError(f"{path} is corrupt: its texts, metadata and vectors differ in number{REBUILD}", path)
    given = None if embedder is None else embedder.name
    if made_with != given:
        raise EmbeddingError(
            f"{path} was created with the embedder {made_with!r}, got {describe(given)}; pass that embedder, or "
            "rebuild the index",
            embedder,
        )
    return Contents(*lists, vectors)


def _is_list_of(kind: type, part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(one, kind) for one in part)


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the two parts, checked before reading: a zip file can claim any size and contain duplicate names."""
    listed = archive.infolist()
    members = {one.filename: one for one in listed}
    if len(listed) != len(_MEMBERS) or set(members) != _MEMBERS:
        raise ValueError("it contains other parts than a header and vectors")
    if any(one.compress_type != zipfile.ZIP_STORED or one.compress_size != one.file_size for one in listed):
        raise ValueError("it is compressed")
    if sum(one.file_size for one in listed) > size:
        raise ValueError("its parts claim to be larger than the file")
    return members


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str, *, dimensions: int) -> NDArray[Any]:
    """Read an array if its size matches its header; rejects object arrays, which NumPy would unpickle."""
    with archive.open(member) as file:
        if npy.read_magic(file) != (1, 0):
            raise ValueError(f"{member.filename} has an unknown version")
        shape, by_columns, numbers = npy.read_array_header_1_0(file)
        claimed = math.prod(shape) * numbers.itemsize
        if numbers.kind not in kinds or len(shape) != dimensions or min(shape) < 0:
            raise ValueError(f"{member.filename} has an unexpected shape or type: {shape}, {numbers}")
        if claimed != member.file_size - file.tell():
            raise ValueError(
                f"{member.filename} has {member.file_size:,} bytes, but its header claims {claimed:,} bytes of data"
            )
        return np.ndarray(shape, numbers, file.read(), order="F" if by_columns else "C")
