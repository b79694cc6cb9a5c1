"""What is kept in a folder, so that a second question need not make it again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from oprag.errors import IndexFileWarning, OpragError

__all__ = ["kept"]

T = TypeVar("T")


def kept(path: Path, read: Callable[[Path], T], make: Callable[[], T], write: Callable[[T, Path], None]) -> T:
    """What a file holds; where there is none, what is made, and kept there.

    What goes wrong with the file or its folder is warned about, and the thing is made as if there were none.

    Args:
        path: The file; its folder is made where it is missing.
        read: Reads the file; raises an `OpragError` where it is damaged.
        make: Makes what is missing.
        write: Writes the file, whole or not at all, since other processes may do the same.
    """
    try:
        return read(path)
    except FileNotFoundError:
        pass
    except (OpragError, OSError) as error:
        _warn(f"what was kept cannot be used and is made anew: {error}")
    made = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(made, path)
    except OSError as error:
        _warn(f"nothing can be kept in {path.parent}: {error.strerror or error}")
    return made


def _warn(message: str) -> None:
    warnings.warn(IndexFileWarning(message), stacklevel=4)
