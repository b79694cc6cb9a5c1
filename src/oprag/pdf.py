"""Reading the text of PDF files, page by page."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

from oprag.errors import InputFileError, MissingExtraError

__all__ = ["is_pdf", "pdf_pages"]

_MARK = b"%PDF-"


def is_pdf(name: str, data: bytes) -> bool:
    """Whether a file is a PDF, or says so in its name."""
    return data.startswith(_MARK) or name.lower().endswith(".pdf")


def pdf_pages(name: str, data: bytes, extra: str) -> list[str]:
    """The text of each page, as far as the file has it as text.

    Args:
        name: The name of the file, for messages.
        data: Its bytes.
        extra: The extra of this package that brings what reads them, for a message.

    Raises:
        MissingExtraError: The package `pypdf` is not installed.
        InputFileError: The file is damaged or encrypted, or has no text in it.
    """
    try:
        import pypdf
    except ImportError as error:
        raise MissingExtraError("Reading a PDF file", extra) from error
    with _silence(), _long_arrays(pypdf):
        pages = _pages(pypdf, name, data)
    if not any(page.strip() for page in pages):
        raise InputFileError(
            f"{name} has no text in it: its pages ({len(pages)}) are empty or scanned images; make them text first, "
            "for example with ocrmypdf",
            name,
        )
    return pages


def _pages(pypdf: Any, name: str, data: bytes) -> list[str]:
    pages: list[str] = []
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted:
            _open(reader, name)
        pages.extend(page.extract_text() for page in reader.pages)
    except InputFileError:
        raise
    except pypdf.errors.DependencyError as error:
        raise InputFileError(
            f"{name} is encrypted with AES, which needs an optional dependency: pip install 'pypdf[crypto]'; or make a "
            "copy without a password first, for example with qpdf --decrypt",
            name,
        ) from error
    except Exception as error:
        where = f", page {len(pages) + 1}" if pages else ""
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputFileError(
            f"{name} is no PDF file, or is damaged{where} ({reason}); repair it first, for example with qpdf or "
            "mutool clean",
            name,
        ) from error
    return pages


def _open(reader: Any, name: str) -> None:
    """Open an encrypted file without a password; one that may only not be printed has none.

    Raises:
        InputFileError: It has one, or an encryption that the library does not know.
    """
    try:
        opened = bool(reader.decrypt(""))
    except Exception as error:
        if type(error).__name__ == "DependencyError":
            raise
        opened = False
    if not opened:
        raise InputFileError(
            f"{name} is encrypted; make a copy without a password first, for example with qpdf --decrypt", name
        )


def _long_arrays(pypdf: Any) -> AbstractContextManager[Any]:
    """Let an array have a million elements: reports of companies have lists of more than the library's 100,000."""
    if not hasattr(pypdf, "apply_configuration"):
        return nullcontext()
    return cast("AbstractContextManager[Any]", pypdf.apply_configuration(array_maximum_element_count=1_000_000))


@contextmanager
def _silence() -> Iterator[None]:
    """Keep from the terminal what the library has to say about every oddity of a file."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
