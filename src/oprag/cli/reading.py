"""Reading files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from oprag.cli.index_cache import cached_pages
from oprag.cli.pdf import is_pdf, pdf_pages
from oprag.errors import InputFileError

__all__ = ["STDIN", "Sources", "read_sources", "whole_texts"]

STDIN = "<stdin>"

Sources = Mapping[str, str | list[str]]
"""The text of each source by its name, or its pages."""


def whole_texts(sources: Sources) -> dict[str, str]:
    """Each source as one text; blank lines stand between pages."""
    return {name: text if isinstance(text, str) else "\n\n".join(text) for name, text in sources.items()}


def read_sources(files: Sequence[str], cache: str | None = None) -> Sources:
    """The text of each file by its name, or its pages; a file that is named twice is read once.

    Bytes of text files are decoded as they are, line ends included, so that character offsets are those of the file
    (counted from behind a byte-order mark).

    Args:
        files: Paths; "-" is standard input.
        cache: A folder where the pages of PDF files are kept, if any.

    Raises:
        InputFileError: A file is missing, is no file, cannot be opened, is neither UTF-8 nor a PDF, or has no text in
            it.
        MissingExtraError: A file is a PDF, and what reads it is not installed.
    """
    return {STDIN if name == "-" else name: _content(name, cache) for name in dict.fromkeys(files)}


def _content(name: str, cache: str | None) -> str | list[str]:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputFileError(f"cannot read {name}: {reason}", name) from error
    if not is_pdf(name, data):
        return _text(name, data)
    read = partial(pdf_pages, name, data)
    return read() if cache is None else cached_pages(Path(cache), data, read)


def _text(name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(
            f"{name} is not UTF-8 text: byte {error.start:,} is 0x{data[error.start]:02x}; convert it first, for "
            "example with iconv -f latin1 -t utf-8",
            name,
        ) from error
    if "\0" in text:
        raise InputFileError(f"{name} is no text file: it has zero bytes in it", name)
    if not text.strip():
        raise InputFileError(f"{name} has no text in it", name)
    return text
