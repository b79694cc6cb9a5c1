"""Writes files atomically."""

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

from oprag.errors import OpragError, OptionError

__all__ = ["FileKind", "begins_with", "check_target", "replacing", "replacing_target"]

if sys.platform != "win32":
    import fcntl


# Suffixes of files that SQLite keeps next to a database and trusts.
_OF_DATABASES = ("-wal", "-shm", "-journal")
_UNFINISHED = ".oprag-unfinished-"
_MAX_LINKS = 40  # links that lead to links, as in Linux


class FileKind(NamedTuple):
    """A kind of output file.

    Attributes:
        noun: Its name in messages, such as "an HTML file".
        is_one: Returns whether a file is of this kind, and so may be overwritten.
    """

    noun: str
    is_one: Callable[[Path], bool]


def check_target(
    path: str | os.PathLike[str], *others: str | os.PathLike[str], kind: FileKind, advice: str = "name another file"
) -> Path:
    """Reject a file that cannot or must not be written, before computing its contents; return its path."""
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"cannot write {target}: it is a folder; name a file in it", path)
    if not target.parent.is_dir():
        raise OptionError(f"cannot write {target}: the folder {target.parent} does not exist; create it first", path)
    try:
        resolved = _followed(target)
    except OSError as error:
        raise OptionError(f"cannot write {target}: {error.strerror}", path) from error
    if any(resolved == Path(other).resolve() for other in others):
        raise OptionError(f"{target} is an input of this command and would be overwritten; name another file", path)
    for ending in _OF_DATABASES:
        database = resolved.with_name(resolved.name.removesuffix(ending))
        if database != resolved and (database.exists() or any(database == Path(other).resolve() for other in others)):
            raise OptionError(f"{target} is part of the database {database.name}; name another file", path)
    # Non-files such as pipes are written to directly. For a link, the file that it leads to is replaced.
    if target.is_file() or not target.exists():
        if not os.access(resolved.parent, os.W_OK):
            raise OptionError(f"cannot write {target}: the folder {resolved.parent} is not writable", path)
        if target.exists() and target.stat().st_size and not kind.is_one(target):
            raise OptionError(
                f"{target} already exists and is not {kind.noun}; refusing to overwrite it: {advice}", path
            )
    return target


def begins_with(path: Path, start: bytes) -> bool:
    """Return whether a file can be read and starts with these bytes, ignoring case."""
    try:
        with path.open("rb") as file:
            return file.read(len(start)).lower() == start.lower()
    except OSError:
        return False


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that atomically replaces the file at the path when the block ends without an error.

    Readers never see a partial file, and if several processes write at the same time, the last one wins. A killed
    process leaves a hidden temporary file, which the next write to the folder removes.
    """
    # Check before following links: /dev/stdout leads to a pipe that has no path.
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = _followed(path)
    _remove_leftovers(path.parent)
    before = path.lstat() if path.exists() else None
    unfinished, descriptor = _new_file(path.parent, 0o600 if before else 0o666)
    # The lock lasts until both descriptors are closed, so it still protects the file while it is renamed.
    lock = None if sys.platform == "win32" else os.dup(descriptor)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        if before is not None:
            _copy_permissions(unfinished, before)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def replacing_target(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """`replacing` for a file that a user named: raises OptionError if it cannot be written."""
    target = Path(path)
    try:
        with replacing(target) as file:
            yield file
    except OpragError:  # raised while computing the contents
        raise
    except OSError as error:
        raise OptionError(f"cannot write {target}: {error.strerror or error}", path) from error


def _followed(path: Path) -> Path:
    """Resolve links. Follows only links owned by the current user, root or the owner of the link's folder."""
    seen = 0
    while path.is_symlink() and hasattr(os, "geteuid"):
        owner = path.lstat().st_uid
        if owner not in (os.geteuid(), 0, path.parent.stat().st_uid):
            raise PermissionError(
                errno.EPERM, "it is a link that belongs to another user; name the file itself", str(path)
            )
        if (seen := seen + 1) > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        path = path.parent / path.readlink()
    # Do not resolve the last part: a link created there from now on is replaced, not followed.
    return path.parent.resolve() / path.name


def _new_file(folder: Path, mode: int) -> tuple[Path, int]:
    """Create a file with a unique name that is locked while it is open."""
    while True:
        path = folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            if sys.platform == "win32":
                return path, descriptor
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Retry if another process deleted it as a leftover before it was locked.
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
        except BaseException:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed processes, which are those without a lock."""
    if sys.platform == "win32":
        return
    for leftover in folder.glob(f"{_UNFINISHED}*"):
        # Skip files of other users, files that are being written, and file systems without locks.
        with suppress(OSError):
            descriptor = os.open(leftover, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()
            finally:
                os.close(descriptor)


def _copy_permissions(path: Path, before: os.stat_result) -> None:
    """Copy the group and permissions of the file to be replaced."""
    with suppress(OSError, AttributeError):
        os.chown(path, -1, before.st_gid)
    path.chmod(stat.S_IMODE(before.st_mode) & 0o777)
