"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from oprag.errors import OptionError

__all__ = ["check_replaced", "check_target", "replacing"]


def check_target(path: str | os.PathLike[str], *others: str | os.PathLike[str]) -> Path:
    """Refuse a file that cannot be written, or must not be, before anything is computed for it.

    Args:
        path: The file.
        others: Files that it must not be: those that are read.

    Raises:
        OptionError: Its folder does not exist or cannot be written to, it is a folder, or it is one of the others.
    """
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"cannot write {target}: it is a folder; name a file in it", path)
    if not target.parent.is_dir():
        raise OptionError(f"cannot write {target}: there is no folder {target.parent}; make it first", path)
    if any(target.resolve() == Path(other).resolve() for other in others):
        raise OptionError(f"{target} is read by this command, and would be written over; name another file", path)
    # What is no file, such as a pipe, is written to; behind a link it is the file that is replaced.
    folder = target.resolve().parent
    if (target.is_file() or not target.exists()) and not os.access(folder, os.W_OK):
        raise OptionError(f"cannot write {target}: nothing can be written to the folder {folder}", path)
    return target


def check_replaced(target: Path, is_one: Callable[[Path], bool], what: str, advice: str) -> None:
    """Refuse to replace a file of another kind, of which nobody said that it may be lost; an empty one may be.

    Args:
        target: The file that is written to; what is no file, such as a pipe, is not replaced.
        is_one: Whether a file is of the kind that is written.
        what: What the kind is called.
        advice: What to do about it.

    Raises:
        OptionError: There is another file in its place.
    """
    if target.is_file() and target.stat().st_size and not is_one(target):
        raise OptionError(f"{target} is there, and is no {what}, so it is not replaced; {advice}", str(target))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of the one at the path in one step, when all of it is written.

    Nobody ever reads half of it, and of several processes that write at once the last one wins. A link stays a link to
    the file that is replaced, a file keeps its permissions, and what is no file, such as a pipe, is written to.
    """
    # Not of what a link leads to: /dev/stdout leads to a pipe that has no path.
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with unfinished.open("xb") as file:
            yield file
        if path.exists():
            unfinished.chmod(path.stat().st_mode)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
