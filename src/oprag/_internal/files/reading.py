"""Reads text and TOML files."""

from __future__ import annotations

import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import Any

from oprag.errors import InputFileError, OpragError

__all__ = ["file_text", "not_utf8", "read_toml"]


def file_text(name: str, data: bytes) -> str:
    """Decode a text file and preserve its line endings, so that offsets are those of the file."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(f"{name} {not_utf8(error)}", name) from error
    if "\0" in text:
        raise InputFileError(f"{name} is not a text file: it contains null bytes", name)
    if not text.strip():
        raise InputFileError(f"{name} contains no text", name)
    return text


def not_utf8(error: UnicodeDecodeError) -> str:
    """Why a text cannot be decoded, and how to convert its file."""
    encoding = "utf-16" if error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "latin1"
    where = f"is not UTF-8 text: byte {error.start:,} is 0x{error.object[error.start]:02x}"
    return f"{where}; convert the file first, for example with iconv -f {encoding} -t utf-8"


def read_toml(path: Path, what: str, error: type[OpragError] = InputFileError) -> dict[str, Any]:
    """Read a TOML file; `what` is its name in messages, `error` is raised for invalid contents."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as cause:
        why = "is a folder" if path.is_dir() else getattr(cause, "strerror", None) or str(cause)
        raise InputFileError(f"cannot read the {what} {path}: {why}", str(path)) from cause
    try:
        read = tomllib.loads(file_text(str(path), data))
        if _has_huge_integer(read):
            raise ValueError("an integer has more than 64 bits")  # noqa: TRY301
    except RecursionError as cause:
        raise error(f"{path.name}: invalid TOML: tables or lists are nested too deeply", str(path)) from cause
    except ValueError as cause:
        raise error(f"{path.name}: invalid TOML: {cause}", str(path)) from cause
    return read


def _has_huge_integer(value: Any) -> bool:
    """Whether an integer has more than TOML's 64 bits: Python reads them, but cannot write huge ones in a message."""
    if isinstance(value, dict | list):
        return any(map(_has_huge_integer, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value.bit_length() > 64
