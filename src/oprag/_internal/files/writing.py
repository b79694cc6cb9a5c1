"""Writes files atomically."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from oprag.errors import OpragError, OptionError

__all__ = ["FileKind", "begins_with", "check_target", "replacing"]


class FileKind(NamedTuple):
    """A kind of output file."""

    noun: str  # its name in messages, such as "an HTML file"
    is_one: Callable[[Path], bool]  # whether a file is of this kind, and so may be overwritten


def check_target(path: str | os.PathLike[str], *others: str | os.PathLike[str], kind: FileKind) -> Path:
    """Reject a file that cannot or must not be written, before computing its contents; return its path."""
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"cannot write {target}: it is a folder; name a file in it", path)
    if not target.parent.is_dir():
        raise OptionError(f"cannot write {target}: the folder {target.parent} does not exist; create it first", path)
    # Unlike `resolve`, this takes a circle of links.
    inputs = [os.path.realpath(other) for other in others]
    if os.path.realpath(target) in inputs:
        raise OptionError(f"{target} is an input of this command and would be overwritten; name another file", path)
    # SQLite trusts files with these names next to a database.
    database = target.with_name(re.sub("-(wal|shm|journal)$", "", target.name))
    if database != target and (database.exists() or os.path.realpath(database) in inputs):
        raise OptionError(f"{target} is part of the database {database.name}; name another file", path)
    # What is not a file, such as a pipe, is written to directly.
    if target.is_file() or not target.exists():
        if not os.access(target.parent, os.W_OK):
            raise OptionError(f"cannot write {target}: the folder {target.parent} is not writable", path)
        if target.exists() and target.stat().st_size and not kind.is_one(target):
            problem = f"{target} already exists and is not {kind.noun}; refusing to overwrite it: name another file"
            raise OptionError(problem, path)
    return target


def begins_with(path: Path, start: bytes) -> bool:
    """Return whether a file can be read and starts with these bytes, ignoring case."""
    try:
        with path.open("rb") as file:
            return file.read(len(start)).lower() == start.lower()
    except OSError:
        return False


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a new file that atomically replaces the file at the path when the block ends without an error.

    Readers never see a partial file, and if several processes write at the same time, the last one wins. A link is
    replaced, too: another user may have planted it. A killed process leaves a hidden temporary file.

    Raises:
        OptionError: The file cannot be written.
    """
    target = Path(path)
    unfinished = target.with_name(f".oprag-unfinished-{secrets.token_hex(8)}")
    try:
        if target.exists() and not target.is_file():  # such as a pipe, or /dev/stdout
            with target.open("wb") as file:
                yield file
            return
        mode = target.stat().st_mode & 0o777 if target.is_file() else None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        # Until it is complete, what replaces a file of its owner alone can be read by its owner alone.
        descriptor = os.open(unfinished, flags, 0o666 if mode is None else 0o600)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        if mode is not None:
            unfinished.chmod(mode)
        unfinished.replace(target)
    except OpragError:  # raised while computing the contents
        raise
    except OSError as error:
        raise OptionError(f"cannot write {target}: {error.strerror or error}", path) from error
    finally:
        unfinished.unlink(missing_ok=True)
