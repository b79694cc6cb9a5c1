"""Files of a question set, compressed or not, and none that lie outside of its folder."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from oprag.compare.data.problems import RecordError
from oprag.errors import InputFileError
from oprag.files.limits import MEGABYTE, limit, variable
from oprag.files.opening import open_regular, same_drive

__all__ = ["file_inside", "files_in", "find_file", "is_within", "lines", "opened", "read_bytes", "stem"]

_GZIP = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read bytes from, decompressed where it is gzip, whatever its name."""
    try:
        with open_regular(path) as file:
            if file.peek(2)[:2] != _GZIP:
                yield file
                return
            with gzip.open(file) as unpacked, io.BufferedReader(_Bounded(unpacked, path)) as content:
                yield content
    except (OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, InputFileError):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise InputFileError(f"cannot read {path}: {reason}", str(path)) from error


class _Bounded(io.RawIOBase):
    """The content of a gzip file, up to a limit: a megabyte of it can unpack to a gigabyte."""

    def __init__(self, unpacked: gzip.GzipFile, path: Path) -> None:
        self._unpacked = unpacked
        self._path = path
        self._left = limit("unpacked_megabytes") * MEGABYTE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._unpacked.readinto(buffer)
        self._left -= size
        if self._left < 0:
            raise InputFileError(
                f"cannot read {self._path}: it has more than {limit('unpacked_megabytes'):,} MB when unpacked; if you "
                f"trust the file, unpack it first, or raise the limit {variable('unpacked_megabytes')}",
                str(self._path),
            )
        return size


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, decompressed, each with its end."""
    most = limit("lines")
    longest = limit("line_megabytes") * MEGABYTE
    with opened(path) as file:
        for number in count(1):
            line = file.readline(longest + 1)
            if len(line) > longest:
                raise InputFileError(
                    f"cannot read {path}: line {number:,} has more than {limit('line_megabytes'):,} MB; if you trust "
                    f"the file, raise the limit {variable('line_megabytes')}",
                    str(path),
                )
            if not line:
                return
            if number > most:
                raise InputFileError(
                    f"cannot read {path}: it has more than {most:,} lines; if you trust the file, raise the limit "
                    f"{variable('lines')}",
                    str(path),
                )
            yield line


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, decompressed."""
    with opened(path) as file:
        return file.read()


def stem(path: Path) -> str:
    """The name of a file without its last ending, and without `.gz`."""
    name = path.name
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return PurePath(name).stem


def find_file(folder: Path, name: str) -> Path | None:
    """The file of this name in a folder, compressed or not, if it is there."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def file_inside(folder: Path, name: str) -> Path:
    """A file that a record names, which must not lead out of the folder; `name.gz` where that exists instead."""
    try:
        root = folder.resolve()
        for candidate in (name, f"{name}.gz"):
            path = root / candidate
            if not same_drive(root, path) or not (path := path.resolve()).is_relative_to(root):
                raise RecordError(
                    f"{name!r} leads out of the folder {folder}; only files in it are read: copy the file there"
                )
            if path.is_file():
                return path
    except (OSError, ValueError, RuntimeError) as error:
        raise RecordError(f"{name!r} is no path of a file: {error}") from error
    raise RecordError(f"there is no file {name!r} in the folder {folder}")


def is_within(folder: Path, path: Path) -> bool:
    """Whether a path, links followed, lies in a folder and is not hidden there; the folder is resolved already."""
    if not same_drive(folder, path):
        return False
    try:
        return not any(part.startswith(".") for part in path.resolve().relative_to(folder).parts)
    except (OSError, ValueError, RuntimeError):
        return False


def files_in(folder: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """The files below a folder by their paths from there, without `.gz`, sorted; hidden ones are skipped."""
    found: dict[str, Path] = {}
    others: list[str] = []
    for name in _names(folder):
        bare = name[:-3] if name.lower().endswith(".gz") else name
        if not bare.lower().endswith(endings):
            others.append(name)
        elif bare in found:
            raise RecordError(f"{bare!r} is there twice, compressed and not; take one of them away")
        else:
            found[bare] = file_inside(folder, name)
    if others:
        more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        raise RecordError(
            f"the folder must have nothing but files that end on {', '.join(endings)} (or .gz behind that), got "
            f"{', '.join(others[:3])}{more}; take the others away"
        )
    if not found:
        raise RecordError(f"there is no file in the folder that ends on {', '.join(endings)}")
    return found


def _names(folder: Path) -> list[str]:
    def refuse(error: OSError) -> None:
        raise InputFileError(f"cannot read the folder {folder}: {error.strerror}", str(folder)) from error

    names = []
    for place, folders, files in os.walk(folder, onerror=refuse):
        here = Path(place).relative_to(folder)
        for name in folders:
            if (folder / here / name).is_symlink() and not name.startswith("."):
                raise RecordError(f"{(here / name).as_posix()!r} is a link to a folder; put the files themselves there")
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [(here / name).as_posix() for name in files if not name.startswith(".")]
    return sorted(names)
