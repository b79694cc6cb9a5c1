"""Reading the whole text of sources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oprag.errors import OptionError, SourceReadError

__all__ = ["ReadSource", "SourceReader", "as_reader", "read_with"]

ReadSource = Callable[[str], str] | Mapping[str, str] | str | os.PathLike[str]
"""Where whole sources come from: a function of the name, a mapping of names to texts, or a folder."""

SourceReader = Callable[[str], str]


def as_reader(read_source: ReadSource | None) -> SourceReader | None:
    """A function that gives the whole text of a source by its name.

    Raises:
        OptionError: `read_source` is no function, no mapping and no folder that is there.
    """
    if read_source is None:
        return None
    read: Callable[[str], Any]
    if isinstance(read_source, Mapping):
        texts = read_source

        def read(name: str) -> Any:
            return texts.get(name)

    elif isinstance(read_source, str | os.PathLike):
        folder = Path(read_source)
        if not str(read_source) or not folder.is_dir():
            raise OptionError(f"read_source must be a folder that is there, got {str(read_source)!r}", read_source)

        def read(name: str) -> Any:
            return _file_text(folder, name)

    elif callable(read_source):
        read = read_source
    else:
        raise OptionError(
            f"read_source must be a folder, a mapping or a function, got {type(read_source).__name__}", read_source
        )

    def checked(name: str) -> str:
        text = read(name)
        if not isinstance(text, str):
            found = "nothing" if text is None else type(text).__name__
            raise SourceReadError(f"read_source has no text for source {name!r}: it gave {found}", name)
        return text

    return checked


def _file_text(folder: Path, name: str) -> str:
    """The text of a file inside a folder.

    The name comes from metadata, which anybody may have written, so it must not lead out of the folder.
    """
    root = folder.resolve()
    try:
        places = [(root / name).resolve(), Path(name).resolve()]
        inside = [place for place in places if place.is_relative_to(root)]
        place = next((place for place in inside if place.is_file()), None)
    except (OSError, ValueError, RuntimeError) as error:  # too long, zero bytes, circles of links
        raise SourceReadError(f"source {name!r} is no file name: {error}", name) from error
    if not inside:
        raise SourceReadError(f"source {name!r} lies outside of the folder {str(folder)!r}", name)
    if place is None:
        raise SourceReadError(f"there is no file {name!r} in {str(folder)!r}", name)
    try:
        return place.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SourceReadError(f"cannot read source {name!r}: {error.strerror or error}", name) from error
    except UnicodeDecodeError as error:
        raise SourceReadError(
            f"source {name!r} is not UTF-8 text; give read_source= a function that reads it", name
        ) from error


def read_with(reader: SourceReader | None, name: str) -> str:
    """The whole text of a source.

    Raises:
        SourceReadError: It cannot be read, or there is nothing to read it with.
    """
    if reader is None:
        raise SourceReadError(f"source {name!r} cannot be read, since there is no read_source=", name)
    return reader(name)
