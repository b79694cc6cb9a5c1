"""Reading the whole text of sources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from oprag.errors import OptionError, SourceReadError
from oprag.source import text_of

__all__ = ["ReadSource", "SourceReader", "as_reader", "read_with"]

ReadSource = Callable[[str], str] | Mapping[str, str] | Mapping[Path, str] | str | os.PathLike[str]
"""Where whole sources come from: a function of the name, a mapping of names to texts, or a folder."""


class SourceReader:
    """Gives the whole text of a source by its name.

    Args:
        read_source: Where the texts come from.

    Raises:
        OptionError: It is no function that gives texts, no mapping, and no folder that is there.
    """

    def __init__(self, read_source: ReadSource) -> None:
        self._read_source: Any = read_source
        if isinstance(read_source, str | os.PathLike):
            # Now, since a program may change its folder later.
            self._read_source = Path(read_source).resolve()
            if not str(read_source) or not self._read_source.is_dir():
                raise OptionError(f"read_source must be a folder that is there, got {str(read_source)!r}", read_source)
        elif iscoroutinefunction(read_source):
            raise OptionError("read_source must be a function that gives the text, and not an async one", read_source)
        elif not isinstance(read_source, Mapping) and not callable(read_source):
            raise OptionError(
                f"read_source must be a folder, a mapping or a function, got {type(read_source).__name__}", read_source
            )

    def __call__(self, name: str) -> str:
        """The text of a source.

        Raises:
            SourceReadError: It cannot be had, or lies outside of the folder.
        """
        text = self._text(name)
        if not isinstance(text, str):
            found = "nothing" if text is None else type(text).__name__
            raise SourceReadError(f"read_source has no text for source {name!r}: it gave {found}", name)
        return text

    def _text(self, name: str) -> Any:
        if isinstance(self._read_source, Mapping):
            return text_of(self._read_source, name)
        if isinstance(self._read_source, Path):
            return _file_text(self._read_source, name)
        return self._read_source(name)


def as_reader(read_source: ReadSource | None) -> SourceReader | None:
    """What reads whole sources, if they can be read.

    Raises:
        OptionError: `read_source` is nothing to read from.
    """
    return None if read_source is None else SourceReader(read_source)


def _file_text(folder: Path, name: str) -> str:
    """The text of a file inside a folder.

    The name comes from metadata, which anybody may have written, so it must not lead out of the folder.
    """
    try:
        places = [(folder / name).resolve(), Path(name).resolve()]
        inside = [place for place in places if place.is_relative_to(folder)]
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
