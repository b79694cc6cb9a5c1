"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from oprag.errors import OptionError

__all__ = ["FileKind", "begins_with", "check_target", "replacing"]

if sys.platform != "win32":
    import fcntl


# Files that SQLite keeps beside a database and believes.
_OF_DATABASES = ("-wal", "-shm", "-journal")
_UNFINISHED = ".oprag-unfinished-"
_LINKS = 40  # links that lead to links, as Linux has it


class FileKind(NamedTuple):
    """A kind of file that is written.

    Attributes:
        noun: What it is called in messages, such as "an HTML file".
        is_one: Whether a file is of this kind, and so may be replaced.
    """

    noun: str
    is_one: Callable[[Path], bool]


def check_target(
    path: str | os.PathLike[str], *others: str | os.PathLike[str], kind: FileKind, advice: str = "name another file"
) -> Path:
    """Refuse a file that cannot be written, or must not be, before anything is computed for it."""
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"cannot write {target}: it is a folder; name a file in it", path)
    if not target.parent.is_dir():
        raise OptionError(f"cannot write {target}: there is no folder {target.parent}; make it first", path)
    try:
        resolved = _followed(target)
    except OSError as error:
        raise OptionError(f"cannot write {target}: {error.strerror}", path) from error
    if any(resolved == Path(other).resolve() for other in others):
        raise OptionError(f"{target} is read by this command, and would be written over; name another file", path)
    for ending in _OF_DATABASES:
        database = resolved.with_name(resolved.name.removesuffix(ending))
        if database != resolved and (database.exists() or any(database == Path(other).resolve() for other in others)):
            raise OptionError(f"{target} is a part of the database {database.name}; name another file", path)
    # What is no file, such as a pipe, is written to; behind a link it is the file that is replaced.
    if target.is_file() or not target.exists():
        if not os.access(resolved.parent, os.W_OK):
            raise OptionError(f"cannot write {target}: nothing can be written to the folder {resolved.parent}", path)
        if target.exists() and target.stat().st_size and not kind.is_one(target):
            raise OptionError(
                f"{target} already exists and is not {kind.noun}; refusing to overwrite it: {advice}", path
            )
    return target


def begins_with(path: Path, start: bytes) -> bool:
    """Whether a file can be read and begins with these bytes, whatever the case of letters."""
    try:
        with path.open("rb") as file:
            return file.read(len(start)).lower() == start.lower()
    except OSError:
        return False


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A new file that takes the place of the one at the path in one step, when all of it is written.

    Nobody ever reads half of it, and of several processes that write at once the last one wins. A killed process leaves
    a hidden file behind, which the next write to the folder removes.
    """
    if not private:
        # Not of what a link leads to: /dev/stdout leads to a pipe that has no path.
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        path = _followed(path)
    _remove_leftovers(path.parent)
    before = None if private or not path.exists() else path.lstat()
    unfinished, descriptor = _new_file(path.parent, 0o600 if private or before else 0o666)
    # The lock lasts until both are closed, so it is held when the file has its name.
    held = None if sys.platform == "win32" else os.dup(descriptor)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        if before is not None:
            _give(unfinished, before)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _followed(path: Path) -> Path:
    """The file that a path leads to. In a folder of somebody else only his links are followed, and those of root."""
    seen = 0
    while path.is_symlink() and hasattr(os, "geteuid"):
        owner = path.lstat().st_uid
        if owner not in (os.geteuid(), 0, path.parent.stat().st_uid):
            raise PermissionError(
                errno.EPERM, "it is a link that another user has put there; name the file itself", str(path)
            )
        if (seen := seen + 1) > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        path = path.parent / path.readlink()
    # A link that takes its place from now on is replaced, not followed.
    return path.parent.resolve() / path.name


def _new_file(folder: Path, mode: int) -> tuple[Path, int]:
    """A new file with a name of its own, locked for as long as it is open."""
    while True:
        path = folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            if sys.platform == "win32":
                return path, descriptor
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Before it was locked another process may have taken it for a leftover.
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
        except BaseException:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of processes that were killed: a lock ends with its process, wherever that runs."""
    if sys.platform == "win32":
        return
    for leftover in folder.glob(f"{_UNFINISHED}*"):
        # Another user's, one that is being written, or a file system without locks.
        with suppress(OSError):
            descriptor = os.open(leftover, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()
            finally:
                os.close(descriptor)


def _give(path: Path, before: os.stat_result) -> None:
    """Give a file the group and the permissions of the one that it replaces."""
    with suppress(OSError, AttributeError):
        os.chown(path, -1, before.st_gid)
    path.chmod(stat.S_IMODE(before.st_mode) & 0o777)
