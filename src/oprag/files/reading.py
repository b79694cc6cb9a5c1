"""The text of a file, as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from oprag.errors import InputFileError, OpragError

__all__ = ["file_text", "read_toml"]


def file_text(name: str, data: bytes) -> str:
    """The characters of a text file, line ends included, so that offsets are those of the file."""
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


def read_toml(path: Path, what: str, error: type[OpragError] = InputFileError) -> dict[str, Any]:
    """What a TOML file says."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as cause:
        why = "is a folder" if path.is_dir() else getattr(cause, "strerror", None) or str(cause)
        raise InputFileError(f"cannot read the {what} {path}: {why}", str(path)) from cause
    try:
        read = tomllib.loads(file_text(str(path), data))
        _check_integers(read)
    except RecursionError as cause:
        raise error(f"{path.name}: it is nested too deeply", str(path)) from cause
    except ValueError as cause:
        raise error(f"{path.name}: this is no TOML: {cause}", str(path)) from cause
    return read


def _check_integers(value: Any) -> None:
    """Refuse what no integer of TOML is, which Python reads, and cannot always write into a message."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("an integer has more than 64 bits")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_integers(one)
