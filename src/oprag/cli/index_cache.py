"""Indexes of files and pages of PDF files, kept in a folder."""

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
from oprag.index.file import read_index
from oprag.index.splitting import Split

if TYPE_CHECKING:
    from oprag.cli.index import Sources

__all__ = ["cached_index", "cached_pages", "forget", "index_key"]

_FORMAT = 1
_INDEX, _PAGES = ".oprag-index", ".oprag-pages"
# Unfinished ones of processes that were killed, too.
_OURS = re.compile(r"[0-9a-f]{32}\.oprag-(index|pages)|\.oprag-unfinished-[0-9a-f]{16}")


def index_key(sources: Sources, split: Split, tokenizer: str, embedder: str | None) -> str:
    """What the index of these sources is kept under: a hash of everything that it depends on."""
    given = {
        "format": _FORMAT,
        "split": split,
        "tokenizer": tokenizer,
        "embedder": embedder,
        "sources": list(sources.items()),
    }
    # Not as ASCII: its escapes would make one character of two halves of a surrogate pair.
    encoded = json.dumps(given, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()[:32]


def cached_index(
    folder: Path, key: str, sources: Sources, embedder: Embedder | None, make: Callable[[], DocumentIndex]
) -> DocumentIndex:
    """The index from the folder, else a new one, which is kept there.

    Texts of chunks are compared with the sources: another user may have given one file the name of another one. Vectors
    are not, since that would mean to embed the texts again; no other user has been able to write to the file.
    """
    path = folder / f"{key}{_INDEX}"

    def read(file: BinaryIO) -> DocumentIndex:
        texts, metadata, vectors = read_index(file, path, embedder)
        if not _are_of(sources, texts, metadata):
            raise IndexFileError(f"{path} is damaged: its chunks are not the text of the files", path)
        return DocumentIndex(texts, metadata, None if embedder is None else vectors, embedder)

    return _kept(path, read, make, lambda index, path: index.save(path, private=True))


def cached_pages(folder: Path, data: bytes, make: Callable[[], list[str]]) -> list[str]:
    """The pages of a PDF file from the folder, else as they are read, which takes longer than to embed them."""
    key = hashlib.sha256(data).hexdigest()
    path = folder / f"{key[:32]}{_PAGES}"

    def read(file: BinaryIO) -> list[str]:
        try:
            content = json.loads(file.read())
            pages, pdf = [str(page) for page in content["pages"]], content["pdf"]
        except (ValueError, LookupError, TypeError) as error:
            raise IndexFileError(f"{path} is damaged: {error}", path) from error
        if pdf != key:
            raise IndexFileError(f"{path} is damaged: its pages are those of another PDF file", path)
        return pages

    def write(pages: list[str], path: Path) -> None:
        with replacing(path, private=True) as file:
            file.write(json.dumps({"pdf": key, "pages": pages}).encode())

    return _kept(path, read, make, write)


def forget(folder: Path) -> None:
    """Delete everything that is kept in a folder, and nothing else."""
    try:
        for path in folder.iterdir():
            if _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OptionError(
            f"cannot delete what is kept in {folder}: {error.filename}: {error.strerror}; delete it yourself",
            str(folder),
        ) from error


def _are_of(sources: Sources, texts: Sequence[Any], metadata: Sequence[Any]) -> bool:
    """Whether chunks are pieces of these sources."""
    for text, place in zip(texts, metadata, strict=True):
        content, page = sources.get(place.get("source"), ""), place.get("page", 0)
        whole = content if isinstance(content, str) else "".join(content[page - 1 : page])
        if whole[place.get("start_index") : place.get("end_index")] != text:
            return False
    return True


T = TypeVar("T")


def _kept(path: Path, read: Callable[[BinaryIO], T], make: Callable[[], T], write: Callable[[T, Path], None]) -> T:
    """Read a file, or make what it should contain and store it there.

    A file that another user may have written is not read, since its content decides what the user is told. A problem
    with the file or its folder is warned about, and the thing is made as if there were no file. `write` writes the file
    whole or not at all, since other processes may do the same.
    """
    try:
        with open_private(path) as file:
            return read(file)
    except FileNotFoundError:
        pass
    except (OpragError, OSError) as error:
        _warn(f"what was kept cannot be used and is made anew: {_reason(error)}")
    made = make()
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write(made, path)
    except OSError as error:
        _warn(f"nothing can be kept in {path.parent}: {_reason(error)}")
    return made


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _warn(message: str) -> None:
    warnings.warn(IndexFileWarning(message), stacklevel=4)
