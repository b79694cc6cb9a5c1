"""Files of a question set: plain or gzip-compressed, and only from inside its folder."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePath

from oprag._internal.files.limits import MEGABYTE, limit, variable
from oprag._internal.files.opening import open_regular, resolved, same_drive
from oprag._internal.masking import describe, error_text
from oprag.errors import InputFileError

__all__ = [
    "file_inside",
    "files_in",
    "find_file",
    "is_within",
    "lines",
    "needed_file",
    "read_bytes",
    "stem",
    "without_gz",
]

_GZIP = b"\x1f\x8b"


def read_bytes(path: Path) -> bytes:
    """Read a whole file; gzip is recognized by content and decompressed, up to a size limit."""
    most = limit("unpacked_megabytes")
    try:
        with open_regular(path) as file:
            if file.peek(2)[:2] != _GZIP:
                return file.read()
            with gzip.open(file) as unpacked:
                data = unpacked.read(most * MEGABYTE + 1)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, InputFileError):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise InputFileError(f"cannot read {path}: {reason}", str(path)) from error
    if len(data) > most * MEGABYTE:
        # One megabyte can decompress to a gigabyte.
        raise _too_large(path, f"it decompresses to more than {most:,} MB", "unpacked_megabytes")
    return data


def _too_large(path: Path, why: str, name: str) -> InputFileError:
    return InputFileError(
        f"cannot read {path}: {why}; if you trust the file, raise the limit {variable(name)}", str(path)
    )


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, decompressed, with their line endings."""
    longest, most = limit("line_megabytes"), limit("lines")
    for number, line in enumerate(io.BytesIO(read_bytes(path)), 1):
        if len(line) > longest * MEGABYTE:
            raise _too_large(path, f"line {number:,} has more than {longest:,} MB", "line_megabytes")
        if number > most:
            raise _too_large(path, f"it has more than {most:,} lines", "lines")
        yield line


def without_gz(name: str) -> str:
    """Remove the ending `.gz` from a file name."""
    return name[:-3] if name.lower().endswith(".gz") else name


def stem(path: Path) -> str:
    """File name without `.gz` and without its extension."""
    return PurePath(without_gz(path.name)).stem


def find_file(folder: Path, name: str) -> Path | None:
    """Path of a file in a folder, compressed or not; None if it is missing."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def needed_file(folder: Path, name: str) -> Path:
    """Path of a required file in a folder, compressed or not."""
    path = find_file(folder, name)
    if path is None:
        raise InputFileError(f"{name} is missing in the folder {folder}", str(folder))
    return path


def file_inside(folder: Path, name: str) -> Path:
    """Resolve a file name from a record, which must stay inside the folder; falls back to `name.gz`."""
    root = folder.resolve()
    for candidate in (name, f"{name}.gz"):
        path = root / candidate
        try:
            inside = same_drive(root, path) and (path := resolved(path)).is_relative_to(root)
            found = inside and path.is_file()
        except (OSError, ValueError, RuntimeError) as error:
            raise InputFileError(f"{describe(name)} is not a valid file path: {error_text(error)}", name) from error
        if not inside:
            raise InputFileError(
                f"{describe(name)} is outside the folder {folder}; only files in it are read: copy the file there", name
            )
        if found:
            return path
    raise InputFileError(f"the file {describe(name)} is missing in the folder {folder}", name)


def is_within(folder: Path, path: Path) -> bool:
    """Whether a path, after following links, is inside a folder and not hidden there; `folder` must be resolved."""
    if not same_drive(folder, path):
        return False
    try:
        return not any(part.startswith(".") for part in path.resolve().relative_to(folder).parts)
    except (OSError, ValueError, RuntimeError):
        return False


def files_in(folder: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """Files in a folder and its subfolders by relative path without `.gz`, sorted; hidden files are skipped."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_dir() and not path.is_symlink()) or f"/{name}".count("/."):
            continue
        bare = without_gz(name)
        if not bare.lower().endswith(endings):
            raise InputFileError(
                f"unexpected file or link {name} in the folder {folder}, which may only contain files with the "
                f"extensions {', '.join(endings)} (optionally with .gz); move others elsewhere",
                str(folder),
            )
        found[bare] = file_inside(folder, name)
    if not found:
        what = "has no files with the extensions " + ", ".join(endings) if folder.is_dir() else "is not a folder"
        raise InputFileError(f"{folder} {what}", str(folder))
    return found
