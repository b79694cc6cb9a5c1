"""Opens files that another user may have created or replaced."""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import ExitStack
from pathlib import Path, PurePath

__all__ = ["open_regular", "resolved", "same_drive"]

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


def open_regular(path: Path, *, follow_links: bool = True, below: Path | None = None) -> io.BufferedReader:
    """Open a regular file for reading; with `below`, follow no link under that folder."""
    flags = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in (_FLAGS if follow_links else (*_FLAGS, "O_NOFOLLOW")))
    try:
        descriptor = os.open(path, flags) if below is None else _open_below(below, path, flags)
    except OSError as error:
        if not follow_links and path.is_symlink():
            raise _refused(path, "it is a symbolic link") from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _refused(path, "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _open_below(folder: Path, path: Path, flags: int) -> int:
    """Open a file folder by folder, so that no folder can be replaced by a link in the meantime."""
    if os.open not in os.supports_dir_fd:
        return os.open(path, flags)
    *folders, name = path.relative_to(folder).parts
    of_folder = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    with ExitStack() as opened:
        inside = None
        for one in (str(folder), *folders):
            inside = os.open(one, of_folder, dir_fd=inside)
            opened.callback(os.close, inside)
        return os.open(name, flags, dir_fd=inside)


def _refused(path: Path, reason: str) -> PermissionError:
    return PermissionError(errno.EPERM, reason, str(path))
