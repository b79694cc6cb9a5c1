"""Reading files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from oprag.cli.index_cache import cached_pages, forget
from oprag.cli.indexing import Indexing
from oprag.errors import InputFileError
from oprag.files.pdf import is_pdf, pdf_pages
from oprag.files.reading import file_text

__all__ = ["STDIN", "Sources", "read_sources", "whole_texts"]

STDIN = "<stdin>"

Sources = Mapping[str, str | list[str]]
"""The text of each source by its name, or its pages."""


def whole_texts(sources: Sources) -> dict[str, str]:
    """Each source as one text; blank lines stand between pages."""
    return {name: text if isinstance(text, str) else "\n\n".join(text) for name, text in sources.items()}


def read_sources(files: Sequence[str], indexing: Indexing | None = None) -> Sources:
    """The text of each file by its name, or its pages; a file that is named twice is read once.

    Bytes of text files are decoded as they are, line ends included, so that character offsets are those of the file
    (counted from behind a byte-order mark).

    Args:
        files: Paths; "-" is standard input.
        indexing: Where the pages of PDF files are kept, and whether what is kept there is deleted first.

    Raises:
        InputFileError: A file is missing, is no file, cannot be opened, is neither UTF-8 nor a PDF, or has no text in
            it.
        MissingExtraError: A file is a PDF, and what reads it is not installed.
        OptionError: What is kept cannot be deleted.
    """
    cache = None if indexing is None or indexing.index_cache is None else Path(indexing.index_cache)
    if cache is not None and indexing is not None and indexing.forget:
        forget(cache)
    return {STDIN if name == "-" else name: _content(name, cache) for name in dict.fromkeys(files)}


def _content(name: str, cache: Path | None) -> str | list[str]:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputFileError(f"cannot read {name}: {reason}", name) from error
    if not is_pdf(name, data):
        return file_text(name, data)
    read = partial(pdf_pages, name, data, "cli")
    return read() if cache is None else cached_pages(cache, data, read)
