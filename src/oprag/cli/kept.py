"""What is kept in a folder, so that a second question need not make it again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from oprag.errors import IndexFileWarning, OpragError
from oprag.files.opening import open_private

__all__ = ["kept"]

T = TypeVar("T")


def kept(path: Path, read: Callable[[BinaryIO], T], make: Callable[[], T], write: Callable[[T, Path], None]) -> T:
    """Read a file, or make what it should contain and store it there.

    A file that another user may have written is not read, since its content decides what the user is told. A problem
    with the file or its folder is warned about, and the thing is made as if there were no file.

    Args:
        path: The file; its folder is made where it is missing, for this user alone.
        read: Reads the file; raises an `OpragError` where it is damaged.
        make: Makes what is missing.
        write: Writes the file, whole or not at all, since other processes may do the same.
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
