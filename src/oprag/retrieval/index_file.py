"""A saved index: one file, without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.errors import IndexFileError
from oprag.whole_file import replacing

__all__ = ["Contents", "read_index", "write_index"]

_FORMAT = 1


class Contents(NamedTuple):
    """What a file holds: the name of the embedder, if there was one, and texts, metadata and vectors of the chunks."""

    embedder: str | None
    texts: list[str]
    metadata: list[dict[str, Any]]
    vectors: NDArray[np.float32]


def write_index(path: Path, contents: Contents) -> None:
    """Write a file; one that is there is replaced in one step.

    Raises:
        IndexFileError: The metadata holds something that JSON cannot.
    """
    header = {
        "format": _FORMAT,
        "embedder": contents.embedder,
        "texts": contents.texts,
        "metadata": contents.metadata,
    }
    try:
        # Not as ASCII: its escapes would make one character of two halves of a surrogate pair.
        encoded = json.dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise IndexFileError(f"metadata must be what JSON can hold to be saved: {error}", path) from error
    changed = next(
        (data for data in contents.metadata if json.loads(json.dumps(data, ensure_ascii=False)) != data), None
    )
    if changed is not None:
        raise IndexFileError(f"metadata must come back as it is to be saved; JSON would change {changed!r}", path)
    with replacing(path) as file:
        np.savez(file, header=np.frombuffer(encoded, dtype=np.uint8), vectors=contents.vectors, allow_pickle=False)


def read_index(path: Path) -> Contents:
    """Read a file.

    Raises:
        FileNotFoundError: There is no such file.
        IndexFileError: The file is not a saved index, is damaged, or was written by a newer version.
    """
    try:
        # Opened here, since NumPy leaves a damaged file open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            vectors = file["vectors"]
            header = json.loads(file["header"].tobytes().decode("utf-8", "surrogatepass"))
        version, lists = header["format"], (header["texts"], header["metadata"])
        contents = Contents(header["embedder"], *lists, vectors)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise IndexFileError(f"{path} is not a saved index, or is damaged: {error}", path) from error
    if version != _FORMAT:
        raise IndexFileError(f"{path} has format {version}, this version of oprag reads format {_FORMAT}", path)
    if not all(isinstance(part, list) for part in lists):
        raise IndexFileError(f"{path} is damaged: it has no list of texts and metadata", path)
    return contents
