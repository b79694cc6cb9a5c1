"""Finding retrieved chunks in the texts of their sources, where their metadata do not tell their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from oprag.chunk import Chunk, Span, changed
from oprag.errors import OpragWarning, OptionError, PositionWarning
from oprag.files.source_reader import SourceReader
from oprag.masking import describe, masked_error
from oprag.positions.insertion_order import ListedSource, occurrences
from oprag.positions.locate import Place, SourceText
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


class _InStore(NamedTuple):
    """The places of all chunks of a source, by their keys and texts.

    Attributes:
        places: The places.
        key: Returns the key of a chunk that was found.
    """

    places: Mapping[tuple[tuple[str, int], str], Place | None]
    key: Callable[[Chunk], str | None]

    def of(self, chunks: Sequence[Chunk]) -> list[Place | None] | None:
        """The places of some of the chunks; None where one of them was not listed."""
        keys = occurrences(map(self.key, chunks))
        names = [(key, chunk.text) for key, chunk in zip(keys, chunks, strict=False)]
        if len(keys) < len(chunks) or any(name not in self.places for name in names):
            return None
        return [self.places[name] for name in names]


ListSource = Callable[[Sequence[Chunk]], ListedSource | None]
"""Lists all chunks of a source, given some of them; None where they are not known."""


class SourceTexts:
    """The texts of sources, each read when the order of its chunks is asked for, and remembered.

    Args:
        reader: Reads the text of a source.
    """

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        self._known: dict[tuple[str, str], _Known] = {}
        self._in_store: dict[tuple[str, str], _InStore] = {}

    def complete(
        self,
        inputs: ContextInputs,
        options: ContextOptions,
        filter: Callable[[], Any],
        all_chunks: ListSource,
    ) -> Steps[ContextInputs]:
        """Give chunks whose metadata do not tell their order the place of their text in the source.

        Args:
            inputs: The inputs of a context.
            options: The options of the context.
            filter: Returns the filter of the search.
            all_chunks: Lists all chunks of a source.
        """
        groups = inputs.without_order(options, by_store=True)
        if not groups:
            return inputs
        reader = self.reader.filtered(filter)
        try:
            scope = repr(reader.filter)
        except OptionError as error:
            warn(str(error), PositionWarning, cause="filter of read_source")
            return inputs
        located = yield Step(lambda: self._located(groups, reader, scope, all_chunks))
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
        all_chunks: ListSource,
    ) -> dict[int, Span]:
        """The characters of each chunk that was found, by its rank."""
        located: dict[int, Span] = {}
        for group in groups:
            name = group[0].source or "", scope
            known = self._text(group, name, reader)
            if known is None:
                continue
            several = any(len(known.places(chunk.text)) > 1 for chunk in group)
            places = self._among_all(known, name, group, all_chunks) if several else known.locate(group)
            located |= {
                chunk.rank: Span(*place) for chunk, place in zip(group, places, strict=True) if place is not None
            }
        return located

    def _among_all(
        self, known: SourceText, name: tuple[str, str], group: Sequence[Chunk], all_chunks: ListSource
    ) -> list[Place | None]:
        """The places of chunks, some of which are at several places, by those of all chunks of the source."""
        places = self._remembered(name, group)
        if places is not None:
            return places
        listed = all_chunks(group)
        if listed is None:
            places = known.locate(group)
            left = [chunk.text for chunk, place in zip(group, places, strict=True) if place is None]
            if known.learned.keys() >= set(left):
                return places
            known.learn(left)
            return known.locate(group)
        self._in_store[name] = _in_store(known, listed)
        return self._remembered(name, group) or known.locate(group)

    def _remembered(self, name: tuple[str, str], chunks: Sequence[Chunk]) -> list[Place | None] | None:
        """The places of chunks of a source, all of whose chunks were looked for; None where that is not known."""
        there = self._in_store.get(name)
        return None if there is None else there.of(chunks)

    def _text(self, chunks: Sequence[Chunk], name: tuple[str, str], reader: SourceReader) -> SourceText | None:
        """A text by the name of the source and the filter of its reader, for these chunks."""
        known = self._known.get(name)
        if known is not None and time.monotonic() >= known.until:
            # A file may have changed since.
            lacks_one = known.text is None or not all(known.text.places(chunk.text) for chunk in chunks)
            known = None if lacks_one else known
        if known is None:
            self._in_store.pop(name, None)
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
            self._in_store.pop(name, None)
            size -= sizes[name]

    def _locating(
        self, read: NeighborReader, groups: Iterable[Sequence[Chunk]], reader: SourceReader, scope: str
    ) -> NeighborReader:
        """As this reader, with the places of the neighbors in the text."""
        sources = {group[0].source for group in groups}

        def text_of(source: str, chunks: Sequence[Chunk]) -> SourceText | None:
            return self._text(chunks, (source, scope), reader) if source in sources else None

        def located(source: str, chunks: Sequence[Chunk], *, in_sequence: bool) -> list[Chunk]:
            text = text_of(source, chunks)
            if text is None:
                return list(chunks)
            text.learn(chunk.text for chunk in chunks)
            return _with_places(chunks, text.locate(chunks, in_sequence=in_sequence))

        def read_located(chunk: Chunk, number: int) -> list[Chunk]:
            around = list(read(chunk, number))
            text = None if chunk.source is None else text_of(chunk.source, around)
            if text is None:
                return around
            places = self._remembered((chunk.source or "", scope), around)
            return _with_places(around, text.locate(around) if places is None else places)

        # What lists the whole source finds neighbors by the places of all of its chunks.
        locating = getattr(read, "locating", None)
        return read_located if locating is None else locating(located, read_located)


def _in_store(text: SourceText, listed: ListedSource) -> _InStore:
    text.learn(chunk.text for chunk in listed.chunks)
    places = text.locate(listed.chunks, in_sequence=listed.in_sequence)
    names = [(key, chunk.text) for key, chunk in zip(listed.keys, listed.chunks, strict=True)]
    return _InStore(dict(zip(names, places, strict=True)), listed.key)


def _with_places(chunks: Sequence[Chunk], places: Sequence[Place | None]) -> list[Chunk]:
    return [
        changed(chunk, located=None if place is None else Span(*place))
        for chunk, place in zip(chunks, places, strict=True)
    ]


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
