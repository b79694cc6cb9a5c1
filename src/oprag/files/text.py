"""The text of a file, as it is."""

from __future__ import annotations

from oprag.errors import InputFileError

__all__ = ["file_text"]


def file_text(name: str, data: bytes) -> str:
    """The characters of a text file, line ends included, so that offsets are those of the file.

    Args:
        name: The name of the file, for messages.
        data: Its bytes; offsets count from behind a byte-order mark.

    Raises:
        InputFileError: It is not UTF-8, is no text file, or has no text in it.
    """
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
