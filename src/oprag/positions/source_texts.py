"""The cached texts of sources, in which chunks of uncertain order are located."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from oprag.chunk import Chunk
from oprag.errors import OpragWarning, OptionError, PositionWarning
from oprag.files.source_reader import SourceReader
from oprag.filter_key import filter_key
from oprag.masking import describe, masked_error, shown_end, start_of
from oprag.positions.source_text import SourceText
from oprag.warn import warn

__all__ = ["SourceTexts"]

_CACHE_SIZE = 64 * 2**20  # characters of all cached texts together
_OVERHEAD = 1_000  # characters that each text counts in addition, even if it cannot be read
_MAX_NAME_LENGTH, _MAX_ERROR_LENGTH = 45, 100  # characters in a warning
_MAX_AGE = 60.0  # seconds after which a text that lacks a chunk is read again

_Name = tuple[str, Hashable]
"""The name of a source, and the key of the filter that its text was read with."""


class _CachedText(NamedTuple):
    """The cached text of a source.

    Attributes:
        text: The text; None if it could not be read.
        until: The time from which the text is read again if a chunk is not in it.
    """

    text: SourceText | None
    until: float


class SourceTexts:
    """A cache of source texts, each read when the order of its chunks is first needed.

    Args:
        reader: Reads the text of a source.
    """

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        self._cached: dict[_Name, _CachedText] = {}

    def reading(self, filter: Callable[[], Any]) -> Callable[[Sequence[Chunk]], SourceText | None] | None:
        """Return a function that returns the text of the source of chunks; None if the filter cannot be read.

        Args:
            filter: Returns the filter of the search.
        """
        reader = self.reader.filtered(filter)
        try:
            scope = filter_key(reader.filter)
        except OptionError:
            warn(
                "read_source is not used, because it requires the filter of the search, which is not known; pass a "
                "function without the parameter filter",
                PositionWarning,
                cause="filter of read_source",
            )
            return None
        return lambda chunks: self._text(chunks, (chunks[0].source or "", scope), reader)

    def _text(self, chunks: Sequence[Chunk], name: _Name, reader: SourceReader) -> SourceText | None:
        """Return the cached text for a source name and filter, or read it; old texts that lack a chunk are reread."""
        cached = self._cached.get(name)
        if cached is not None and time.monotonic() >= cached.until:
            # The file may have changed.
            lacks_one = cached.text is None or not all(cached.text.places(chunk.text) for chunk in chunks)
            cached = None if lacks_one else cached
        if cached is None:
            cached = self._cached[name] = _CachedText(_read(name[0], reader), time.monotonic() + _MAX_AGE)
            self._evict()
        return cached.text

    def _evict(self) -> None:
        """Drop the texts that were read first until the cache is small enough."""
        sizes = {
            name: _OVERHEAD + len(cached.text.text if cached.text else "")
            for name, cached in list(self._cached.items())
        }
        size = sum(sizes.values())
        for name in list(sizes)[:-1]:
            if size <= _CACHE_SIZE:
                break
            self._cached.pop(name, None)
            size -= sizes[name]


def _read(source: str, reader: SourceReader) -> SourceText | None:
    try:
        return SourceText(reader(source))
    except OpragWarning:
        raise
    except Exception as error:  # noqa: BLE001 - the caller's function can raise anything; retrieval still succeeds
        warn(
            f"{shown_end(source, _MAX_NAME_LENGTH)} cannot be read, so its chunks are not located in it: "
            f"{start_of(masked_error(error), _MAX_ERROR_LENGTH)}",
            PositionWarning,
            cause=f"source that cannot be read: {describe(source)}",
        )
        return None
