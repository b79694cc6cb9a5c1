"""Finding retrieved chunks in the texts of their sources, where their metadata do not tell their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from oprag.chunk import Chunk, Span, changed
from oprag.errors import OpragWarning, OptionError, PositionWarning
from oprag.files.source_reader import SourceReader
from oprag.masking import describe, masked_error
from oprag.positions.locate import SourceText
from oprag.steps import Step
from oprag.warn import warn

if TYPE_CHECKING:
    from oprag.assembly.neighbors import NeighborReader
    from oprag.context import ContextInputs
    from oprag.options import ContextOptions
    from oprag.steps import Steps

__all__ = ["SourceTexts"]

# How many characters are remembered, of all texts together; one that cannot be read counts as a short one.
_REMEMBERED = 64 * 2**20
_SHORT = 1_000
_READ_AGAIN = 60.0  # seconds after which a text that lacks a chunk is read again


class _Known(NamedTuple):
    """The text of a source.

    Attributes:
        text: Its text; None where it could not be read.
        until: When it is read again if a chunk is not in it.
        filter: The filter that it was read with; as long as it is held, no other function has its `repr`.
    """

    text: SourceText | None
    until: float
    filter: Any


class SourceTexts:
    """The texts of sources, each read when the order of its chunks is asked for, and remembered.

    Args:
        reader: Reads the text of a source.
    """

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        self._known: dict[tuple[str, str], _Known] = {}

    def complete(
        self,
        inputs: ContextInputs,
        options: ContextOptions,
        filter: Callable[[], Any],
        all_texts: Callable[[Sequence[Chunk]], Sequence[str]],
    ) -> Steps[ContextInputs]:
        """Give chunks whose metadata do not tell their order the place of their text in the source.

        Args:
            inputs: The inputs of a context.
            options: The options of the context.
            filter: Returns the filter of the search.
            all_texts: Returns the texts of all chunks of a source, given some of them; none where they are not known.
        """
        groups = inputs.without_order(options)
        if not groups:
            return inputs
        reader = self.reader.filtered(filter)
        try:
            scope = repr(reader.filter)
        except OptionError as error:
            warn(str(error), PositionWarning, cause="filter of read_source")
            return inputs
        located = yield Step(lambda: self._located(groups, reader, scope, all_texts))
        if not located:
            return inputs
        chunks = [changed(chunk, located=located.get(chunk.rank, chunk.located)) for chunk in inputs.chunks]
        around = inputs.read_neighbors and self._locating(inputs.read_neighbors, groups, reader, scope)
        return replace(inputs, chunks=chunks, read_neighbors=around, placed={})

    def _located(
        self,
        groups: Iterable[Sequence[Chunk]],
        reader: SourceReader,
        scope: str,
        all_texts: Callable[[Sequence[Chunk]], Sequence[str]],
    ) -> dict[int, Span]:
        """The characters of each chunk that was found, by its rank."""
        located: dict[int, Span] = {}
        for group in groups:
            known = self._text(group, (group[0].source or "", scope), reader)
            if known is None:
                continue
            places = known.locate(group)
            left = [chunk.text for chunk, place in zip(group, places, strict=True) if place is None]
            if any(known.places(text) for text in left if text not in known.learned):
                known.learn(all_texts(group) or left)
                places = known.locate(group)
            located |= {
                chunk.rank: Span(*place) for chunk, place in zip(group, places, strict=True) if place is not None
            }
        return located

    def _text(self, chunks: Sequence[Chunk], name: tuple[str, str], reader: SourceReader) -> SourceText | None:
        """A text by the name of the source and the filter of its reader, for these chunks."""
        known = self._known.get(name)
        if known is not None and time.monotonic() >= known.until:
            # A file may have changed since.
            lacks_one = known.text is None or not all(known.text.places(chunk.text) for chunk in chunks)
            known = None if lacks_one else known
        if known is None:
            known = self._known[name] = _Known(_read(name[0], reader), time.monotonic() + _READ_AGAIN, reader.filter)
            self._forget()
        return known.text

    def _forget(self) -> None:
        """Forget what was read first, until the rest is small enough."""
        sizes = {name: _SHORT + len(known.text.text if known.text else "") for name, known in list(self._known.items())}
        size = sum(sizes.values())
        for name in list(sizes)[:-1]:
            if size <= _REMEMBERED:
                break
            self._known.pop(name, None)
            size -= sizes[name]

    def _locating(
        self, read: NeighborReader, groups: Iterable[Sequence[Chunk]], reader: SourceReader, scope: str
    ) -> NeighborReader:
        """As this reader, with the places of the neighbors in the text."""
        sources = {group[0].source for group in groups}

        def read_located(chunk: Chunk, number: int) -> list[Chunk]:
            around = list(read(chunk, number))
            if chunk.source is None or chunk.source not in sources:
                return around
            text = self._text(around, (chunk.source, scope), reader)
            places = [None] * len(around) if text is None else text.locate(around)
            return [
                changed(one, located=None if place is None else Span(*place))
                for one, place in zip(around, places, strict=True)
            ]

        return read_located


def _read(source: str, reader: SourceReader) -> SourceText | None:
    try:
        return SourceText(reader(source))
    except OpragWarning:
        raise
    except Exception as error:  # noqa: BLE001 - functions raise what they like, and the question has its chunks
        warn(
            f"the text of {describe(source)} cannot be read, so its chunks are not looked for in it: "
            f"{masked_error(error)}",
            PositionWarning,
            cause=f"source that cannot be read: {source}",
        )
        return None
