"""Cache folder for indexes of files and for pages of PDF files (`--index-cache`)."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from oprag.embedding.embedder import Embedder
from oprag.errors import IndexFileError, IndexFileWarning, OpragError, OptionError
from oprag.files.opening import open_private
from oprag.files.writing import replacing
from oprag.index.document_index import DocumentIndex
from oprag.index.file import REBUILD, read_index
from oprag.index.splitting import Split

if TYPE_CHECKING:
    from oprag.cli.index import Sources

__all__ = ["cached_index", "cached_pages", "clear_cache", "index_key"]

_FORMAT = 1
_INDEX, _PAGES = ".oprag-index", ".oprag-pages"
# Includes the temporary files of killed processes.
_OURS = re.compile(r"[0-9a-f]{32}\.oprag-(index|pages)|\.oprag-unfinished-[0-9a-f]{16}")


def index_key(sources: Sources, split: Split, tokenizer: str, embedder: str | None) -> str:
    """Return the cache key of the index of these sources: a hash of everything that the index depends on."""
    given = {
        "format": _FORMAT,
        "split": split,
        "tokenizer": tokenizer,
        "embedder": embedder,
        "sources": list(sources.items()),
    }
    # No ASCII escapes: two lone surrogates would get the same key as the character that they form together.
    encoded = json.dumps(given, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()[:32]


def cached_index(
    folder: Path, key: str, sources: Sources, embedder: Embedder | None, make: Callable[[], DocumentIndex]
) -> DocumentIndex:
    """Return the index from the cache folder, or make it and store it there.

    Chunk texts are compared with the sources, because another user may have renamed one cache file to another's name.
    Vectors cannot be verified without embedding the texts again, but no other user can have written to the file.
    """
    path = folder / f"{key}{_INDEX}"

    def read(file: BinaryIO) -> DocumentIndex:
        texts, metadata, vectors = read_index(file, path, embedder)
        if not _are_of(sources, texts, metadata):
            raise IndexFileError(f"{path} is corrupt: its chunks do not match the text of the files", path)
        return DocumentIndex(texts, metadata, None if embedder is None else vectors, embedder)

    return _cached(path, read, make, lambda index, path: index.save(path, private=True))


def cached_pages(folder: Path, data: bytes, make: Callable[[], list[str]]) -> list[str]:
    """Return the pages of a PDF file from the cache folder, or extract them (slower than embedding) and store them."""
    key = hashlib.sha256(data).hexdigest()
    path = folder / f"{key[:32]}{_PAGES}"

    def read(file: BinaryIO) -> list[str]:
        try:
            content = json.loads(file.read())
            pages, pdf = [str(page) for page in content["pages"]], content["pdf"]
        except (ValueError, LookupError, TypeError) as error:
            raise IndexFileError(f"{path} is corrupt: {error}", path) from error
        if pdf != key:
            raise IndexFileError(f"{path} is corrupt: it contains the pages of another PDF file", path)
        return pages

    def write(pages: list[str], path: Path) -> None:
        with replacing(path, private=True) as file:
            file.write(json.dumps({"pdf": key, "pages": pages}).encode())

    return _cached(path, read, make, write)


def clear_cache(folder: Path) -> None:
    """Delete all cache files in a folder, and no other files."""
    try:
        for path in folder.iterdir():
            if _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OptionError(
            f"cannot delete the cached files in {folder}: {error.filename}: {error.strerror}; delete them manually",
            str(folder),
        ) from error


def _are_of(sources: Sources, texts: Sequence[Any], metadata: Sequence[Any]) -> bool:
    """Return whether each chunk equals the text of its source at its offsets."""
    for text, place in zip(texts, metadata, strict=True):
        content, page = sources.get(place.get("source"), ""), place.get("page", 0)
        whole = content if isinstance(content, str) else "".join(content[page - 1 : page])
        if whole[place.get("start_index") : place.get("end_index")] != text:
            return False
    return True


T = TypeVar("T")


def _cached(path: Path, read: Callable[[BinaryIO], T], make: Callable[[], T], write: Callable[[T, Path], None]) -> T:
    """Read the value from a cache file, or make it and store it there.

    A file that another user may have written is not read, because its content determines the answers. A problem with
    the file or its folder causes a warning, and the value is made as if the file did not exist. `write` must write the
    file atomically, because other processes may write it at the same time.
    """
    try:
        with open_private(path) as file:
            return read(file)
    except FileNotFoundError:
        pass
    except (OpragError, OSError) as error:
        _warn(f"cannot use the cached file, rebuilding it: {_reason(error)}")
    made = make()
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write(made, path)
    except OSError as error:
        _warn(f"cannot write to the cache folder {path.parent}: {_reason(error)}")
    return made


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error).removesuffix(REBUILD)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _warn(message: str) -> None:
    warnings.warn(IndexFileWarning(message), stacklevel=4)
