"""The cached texts of sources, in which chunks of uncertain order are located."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from oprag._internal.filter_key import filter_key
from oprag._internal.masking import describe, masked_error, shown
from oprag._internal.warn import warn
from oprag.chunk import Chunk
from oprag.errors import OpragWarning, OptionError, PositionWarning
from oprag.positions.source_reader import SourceReader
from oprag.positions.source_text import SourceText

__all__ = ["SourceTexts"]

_CACHE_SIZE = 64 * 2**20  # characters of all cached texts together
_OVERHEAD = 1_000  # characters that each text counts in addition, even if it cannot be read
_MAX_NAME_LENGTH, _MAX_ERROR_LENGTH = 45, 100  # characters in a warning
_MAX_AGE = 60.0  # seconds after which a text is read again


class SourceTexts:
    """A cache of source texts, each read when the order of its chunks is first needed.

    Args:
        reader: Reads the text of a source.
    """

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        # By source and filter: the time at which the text is read again, and the text; None if it cannot be read.
        self._cached: dict[tuple[str, Hashable], tuple[float, SourceText | None]] = {}

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
        return lambda chunks: self._text(chunks[0].source or "", scope, reader)

    def _text(self, source: str, scope: Hashable, reader: SourceReader) -> SourceText | None:
        now = time.monotonic()
        until, known = self._cached.get((source, scope), (now, None))
        if now < until:
            return known
        text = _read(source, reader)
        if known is None or text != known.text:
            known = None if text is None else SourceText(text)
        # Copy the values: another thread may change the dictionary.
        sizes = (_OVERHEAD + len(one.text if one else "") for _, one in list(self._cached.values()))
        if sum(sizes) > _CACHE_SIZE:
            self._cached.clear()
        self._cached[source, scope] = now + _MAX_AGE, known
        return known


def _read(source: str, reader: SourceReader) -> str | None:
    try:
        return reader(source)
    except OpragWarning:
        raise
    except Exception as error:  # noqa: BLE001 - the caller's function can raise anything; retrieval still succeeds
        warn(
            f"{shown(source, _MAX_NAME_LENGTH, repr, end=True)} cannot be read, so its chunks are not located in it: "
            f"{shown(masked_error(error), _MAX_ERROR_LENGTH, end=False)}",
            PositionWarning,
            cause=f"source that cannot be read: {describe(source)}",
        )
        return None
