"""Reads files that others may have made or replaced: only regular files, within limits, as text or TOML."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import Any, Final

from oprag._internal.masking import describe
from oprag.errors import InputFileError, OpragError, OptionError

__all__ = [
    "DEFAULTS",
    "MEGABYTE",
    "file_text",
    "limit",
    "not_utf8",
    "open_regular",
    "read_toml",
    "resolved",
    "same_drive",
    "variable",
]

MEGABYTE: Final = 1_000_000
"""Bytes in a megabyte."""

# Ordinary files stay far below. A test compares the table in docs/reference/data_formats.md with this one.
DEFAULTS: Final = {
    "pdf_pages": 10_000,
    "pdf_characters": 20_000_000,
    "pdf_seconds": 10,
    "pdf_megabytes": 1_000,
    "lines": 1_000_000,
    "line_megabytes": 30,
    "unpacked_megabytes": 500,
    "grid_combinations": 100_000,
}


def variable(name: str) -> str:
    """Return the name of the environment variable that sets a limit."""
    return f"OPRAG_MAX_{name.upper()}"


def limit(name: str, more: float = 0) -> int:
    """Return the value of a limit: its environment variable, or its default plus `more`."""
    given = os.environ.get(variable(name), "").strip()
    if not given:
        return int(DEFAULTS[name] + more)
    if not re.fullmatch(r"(?a:[1-9]\d{0,8})", given.replace("_", "").replace(",", "")):
        raise OptionError(f"{variable(name)} must be an integer from 1 to 999,999,999, got {describe(given)}", given)
    return int(given.replace("_", "").replace(",", ""))


# Do not block on a pipe, and do not let a terminal become the controlling one. Some systems lack some of these flags.
_FLAGS = ("O_BINARY", "O_NOCTTY", "O_NONBLOCK")
_MAX_PATH_LENGTH = 10_000  # characters; names of files come from metadata


def same_drive(folder: PurePath, path: PurePath) -> bool:
    """Return whether two paths are on the same drive; checked first, because Windows logs in to remote shares."""
    return path.drive.lower() == folder.drive.lower()


def resolved(path: Path) -> Path:
    """Follow all links; reject a path that no file system accepts, because `resolve` takes quadratic time for it."""
    if len(str(path)) > _MAX_PATH_LENGTH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return path.resolve()


def open_regular(path: Path, *, below: Path | None = None) -> io.BufferedReader:
    """Open a regular file for reading; with `below`, follow no link under that folder."""
    flags = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in _FLAGS)
    descriptor = os.open(path, flags) if below is None else _open_below(below, path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it is not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def _open_below(folder: Path, path: Path, flags: int) -> int:
    """Open a file folder by folder, so that no folder can be replaced by a link in the meantime."""
    if os.open not in os.supports_dir_fd:
        return os.open(path, flags)
    flags |= os.O_NOFOLLOW
    *folders, name = path.relative_to(folder).parts
    of_folder = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    with ExitStack() as opened:
        inside = None
        for one in (str(folder), *folders):
            inside = os.open(one, of_folder, dir_fd=inside)
            opened.callback(os.close, inside)
        return os.open(name, flags, dir_fd=inside)


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
    import tomllib  # not needed where only texts are read

    try:
        return tomllib.loads(file_text(str(path), data))
    except RecursionError as cause:
        raise error(f"{path.name}: invalid TOML: tables or lists are nested too deeply", str(path)) from cause
    except ValueError as cause:
        raise error(f"{path.name}: invalid TOML: {cause}", str(path)) from cause
