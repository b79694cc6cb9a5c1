"""Locates retrieved chunks in the texts of their sources if their metadata do not tell their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from oprag.chunk import Chunk, Span, changed
from oprag.errors import OpragWarning, OptionError, PositionWarning
from oprag.files.source_reader import SourceReader
from oprag.filter_key import filter_key
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

_CACHE_SIZE = 64 * 2**20  # characters of all cached texts together
_OVERHEAD = 1_000  # characters that each text counts in addition, even if it cannot be read
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


class _StoredPlaces(NamedTuple):
    """The places of all stored chunks of a source.

    Attributes:
        places: The places, by key and text of the chunk.
        key: Returns the key of a retrieved chunk.
    """

    places: Mapping[tuple[tuple[str, int], str], Place | None]
    key: Callable[[Chunk], str | None]

    def of(self, chunks: Sequence[Chunk]) -> list[Place | None] | None:
        """Return the places of some of the chunks; None if one of them was not listed."""
        keys = occurrences(map(self.key, chunks))
        names = [(key, chunk.text) for key, chunk in zip(keys, chunks, strict=False)]
        if len(keys) < len(chunks) or any(name not in self.places for name in names):
            return None
        return [self.places[name] for name in names]


ListSource = Callable[[Sequence[Chunk]], ListedSource | None]
"""Lists all chunks of a source, given some of them; returns None if they cannot be listed."""


class SourceTexts:
    """A cache of source texts, each read when the order of its chunks is first needed.

    Args:
        reader: Reads the text of a source.
    """

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        self._cached: dict[_Name, _CachedText] = {}
        self._stored_places: dict[_Name, _StoredPlaces] = {}

    def complete(
        self,
        inputs: ContextInputs,
        options: ContextOptions,
        filter: Callable[[], Any],
        all_chunks: ListSource,
    ) -> Steps[ContextInputs]:
        """Locate chunks of uncertain order in the text of their source.

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
            scope = filter_key(reader.filter)
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
        scope: Hashable,
        all_chunks: ListSource,
    ) -> dict[int, Span]:
        """Return the span of each chunk that was found, by rank."""
        located: dict[int, Span] = {}
        for group in groups:
            name = group[0].source or "", scope
            text = self._text(group, name, reader)
            if text is None:
                continue
            ambiguous = any(len(text.places(chunk.text)) > 1 for chunk in group)
            places = self._among_all(text, name, group, all_chunks) if ambiguous else text.locate(group)
            located |= {
                chunk.rank: Span(*place) for chunk, place in zip(group, places, strict=True) if place is not None
            }
        return located

    def _among_all(
        self, text: SourceText, name: _Name, group: Sequence[Chunk], all_chunks: ListSource
    ) -> list[Place | None]:
        """Locate chunks, some of which occur at several places, by locating all chunks of the source."""
        places = self._places_of(name, group)
        if places is not None:
            return places
        listed = all_chunks(group)
        if listed is None:
            places = text.locate(group)
            left = [chunk.text for chunk, place in zip(group, places, strict=True) if place is None]
            if text.learned.keys() >= set(left):
                return places
            text.learn(left)
            return text.locate(group)
        self._stored_places[name] = _stored_places(text, listed)
        return self._places_of(name, group) or text.locate(group)

    def _places_of(self, name: _Name, chunks: Sequence[Chunk]) -> list[Place | None] | None:
        """Return the cached places of chunks; None if not all chunks of their source were located."""
        cached = self._stored_places.get(name)
        return None if cached is None else cached.of(chunks)

    def _text(self, chunks: Sequence[Chunk], name: _Name, reader: SourceReader) -> SourceText | None:
        """Return the cached text for a source name and filter, or read it; old texts that lack a chunk are reread."""
        cached = self._cached.get(name)
        if cached is not None and time.monotonic() >= cached.until:
            # The file may have changed.
            lacks_one = cached.text is None or not all(cached.text.places(chunk.text) for chunk in chunks)
            cached = None if lacks_one else cached
        if cached is None:
            self._stored_places.pop(name, None)
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
            self._stored_places.pop(name, None)
            size -= sizes[name]

    def _locating(
        self, read: NeighborReader, groups: Iterable[Sequence[Chunk]], reader: SourceReader, scope: Hashable
    ) -> NeighborReader:
        """Wrap a neighbor reader so that the neighbors are located in the text, too."""
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
            places = self._places_of((chunk.source or "", scope), around)
            return _with_places(around, text.locate(around) if places is None else places)

        # A reader that lists whole sources has `locating`: it finds neighbors by the places of all chunks.
        locating = getattr(read, "locating", None)
        return read_located if locating is None else locating(located, read_located)


def _stored_places(text: SourceText, listed: ListedSource) -> _StoredPlaces:
    text.learn(chunk.text for chunk in listed.chunks)
    places = text.locate(listed.chunks, in_sequence=listed.in_sequence)
    names = [(key, chunk.text) for key, chunk in zip(listed.keys, listed.chunks, strict=True)]
    return _StoredPlaces(dict(zip(names, places, strict=True)), listed.key)


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
    except Exception as error:  # noqa: BLE001 - the caller's function can raise anything; retrieval still succeeds
        warn(
            f"the text of {describe(source)} cannot be read, so its chunks are not located in it: "
            f"{masked_error(error)}",
            PositionWarning,
            cause=f"source that cannot be read: {describe(source)}",
        )
        return None
