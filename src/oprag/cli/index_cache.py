"""Indexes of files, kept in a folder, so that a second question need not split and embed again."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

from oprag.embed import Embedder
from oprag.errors import EmbeddingError, IndexFileError, IndexFileWarning
from oprag.index import DocumentIndex
from oprag.split_sources import Split

__all__ = ["cached_index", "index_key"]

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
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()[:32]


def cached_index(folder: Path, key: str, embedder: Embedder | None, make: Callable[[], DocumentIndex]) -> DocumentIndex:
    """The index from the folder, else a new one, which is kept there.

    What goes wrong with the folder is warned about, and the index is made as if there were none. Processes that make
    the same index at once each write a file of their own, and the last one takes its place in one step.

    Args:
        folder: The folder; made where it is missing.
        key: What the index is kept under.
        embedder: Embeds the questions.
        make: Makes the index.
    """
    path = folder / f"{key}.oprag-index"
    try:
        return DocumentIndex.load(path, embedder)
    except FileNotFoundError:
        pass
    except (IndexFileError, EmbeddingError, OSError) as error:
        _warn(f"the index is made anew, since the one that was kept cannot be used: {error}")
    index = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        index.save(path)
    except OSError as error:
        _warn(f"the index cannot be kept in {folder}: {error.strerror or error}")
    return index


def _warn(message: str) -> None:
    warnings.warn(IndexFileWarning(message), stacklevel=3)
