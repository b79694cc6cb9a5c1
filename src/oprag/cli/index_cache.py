"""Indexes of files and pages of PDF files, kept in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from oprag.cli.kept import kept
from oprag.embed import Embedder
from oprag.errors import IndexFileError
from oprag.retrieval.index import DocumentIndex
from oprag.retrieval.split_sources import Split
from oprag.whole_file import replacing

__all__ = ["cached_index", "cached_pages", "index_key"]

_FORMAT = 1


def index_key(sources: Mapping[str, str | list[str]], split: Split, tokenizer: str, embedder: str | None) -> str:
    """What the index of these sources is kept under: a hash of everything that it depends on.

    Args:
        sources: The texts, or pages, by their names.
        split: How they are split.
        tokenizer: The name of what counts the tokens of a chunk.
        embedder: The name of the embedder; None for an index without vectors.
    """
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


def cached_index(folder: Path, key: str, embedder: Embedder | None, make: Callable[[], DocumentIndex]) -> DocumentIndex:
    """The index from the folder, else a new one, which is kept there.

    Args:
        folder: The folder; made where it is missing.
        key: What the index is kept under.
        embedder: Embeds the questions.
        make: Makes the index.
    """

    def read(path: Path) -> DocumentIndex:
        return DocumentIndex.load(path, embedder)

    return kept(folder / f"{key}.oprag-index", read, make, DocumentIndex.save)


def cached_pages(folder: Path, data: bytes, make: Callable[[], list[str]]) -> list[str]:
    """The pages of a PDF file from the folder, else as they are read, which takes longer than to embed them.

    Args:
        folder: The folder; made where it is missing.
        data: The bytes of the file.
        make: Reads the pages.
    """
    key = hashlib.sha256(data).hexdigest()[:32]
    return kept(folder / f"{key}.oprag-pages", _read_pages, make, _write_pages)


def _read_pages(path: Path) -> list[str]:
    try:
        content = json.loads(path.read_bytes())
        version, pages = content["format"], content["pages"]
    except OSError:
        raise
    except Exception as error:
        raise IndexFileError(f"{path} is damaged: {error}", path) from error
    if version != _FORMAT or not isinstance(pages, list) or not all(isinstance(page, str) for page in pages):
        raise IndexFileError(f"{path} is damaged, or of another version", path)
    return pages


def _write_pages(pages: list[str], path: Path) -> None:
    with replacing(path) as file:
        file.write(json.dumps({"format": _FORMAT, "pages": pages}).encode())
