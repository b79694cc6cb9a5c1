"""The orders of the sources that a search found: each is decided once, from all of its chunks, and kept."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, takewhile
from typing import Any, NamedTuple

from oprag._internal.filter_key import filter_key
from oprag._internal.masking import masked_error, shown
from oprag._internal.sync_async import Step, Steps
from oprag._internal.warn import warn
from oprag.chunk import Chunk, Place, changed
from oprag.context import ContextInputs
from oprag.errors import PositionWarning
from oprag.options import ContextOptions, SourceKey
from oprag.pipeline.neighbors import NeighborReader
from oprag.positions.copies import stated_place
from oprag.positions.fields import with_usual_fields
from oprag.positions.retrieved import Undecided
from oprag.positions.source_names import field_of
from oprag.positions.source_order import Listing, order_of
from oprag.positions.source_reader import SourceTexts
from oprag.positions.source_text import SourceText
from oprag.stores.adapter import StoreAdapter, StoredChunk, has_own_adapter, source_in
from oprag.stores.listing import chunk_of_row, chunks_in_search, each_once

__all__ = ["PlacesOfSource", "SourceOrders"]

_CACHE_SIZE = 200_000  # chunks of all sources together
_MAX_AGE = 60.0  # seconds until an order is decided again that is uncertain, or that the store cannot check
# Bounds of the listing of one question in a store; beyond them, sources are ordered by what was retrieved.
_MAX_CHUNKS = 20_000
_MAX_TIME = 2.0  # seconds
_MAX_NAME_LENGTH, _MAX_ERROR_LENGTH = 30, 90  # characters in a warning

_Key = tuple[str, int]
"""The key of a chunk in its store, and the number of earlier chunks with that key."""

PlacesOfSource = Callable[[str, Chunk], Place | None]
"""Returns the place of a chunk of a source; None if it was not decided."""


class _Request(NamedTuple):
    """The retrieved chunks of a source whose order their metadata do not tell."""

    chunks: Sequence[Chunk]
    keys: Sequence[_Key]  # chunks with equal keys are interchangeable
    field: str  # the metadata key that contains the name of their source; empty if no key does
    text: SourceText | None

    @property
    def source(self) -> str:
        return self.chunks[0].source or ""


class _Row(NamedTuple):
    """A chunk of a source, without its text: what is shown is read anew."""

    number: int  # in the sequence of the store
    place: Place
    text: int  # its hash: another text under the same key is another chunk
    stated: int  # hash of the metadata about its place, which may be corrected


class _Decided(NamedTuple):
    """The order of a source, from all of its chunks if the store listed them."""

    rows: Mapping[_Key, _Row]
    listed: bool
    until: float  # then it is decided again
    store: StoreAdapter  # keeping it keeps its id, which is part of the cache key, unique

    def covers(self, request: _Request) -> bool:
        """Return whether it contains all of these chunks with the same texts."""
        both = zip(map(self.rows.get, request.keys), request.chunks, strict=True)
        return all(row is not None and row.text == hash(chunk.text) for row, chunk in both)

    def is_current(self, request: _Request) -> bool:
        """Return whether it covers these chunks, and they state the same places as when it was decided."""
        both = zip(request.keys, request.chunks, strict=True)
        return self.covers(request) and all(self.rows[key].stated == _stated(chunk) for key, chunk in both)

    def agrees(self, request: _Request, now: Mapping[_Key, int] | None) -> bool:
        """Return whether the store currently has these chunks in the same sequence, given their current rows."""
        if now is None:
            return True
        if any(key not in now for key in request.keys):
            return False
        numbers = [self.rows[key].number for key in sorted(request.keys, key=now.__getitem__)]
        return numbers == sorted(numbers)

    def place_of(self, chunk: Chunk) -> Place | None:
        """Return the place of a chunk; None if it is another one now.

        Of chunks that share a key, such as equal texts, its own place tells which one it is.
        """
        key = self.store.key(chunk) or ""
        rows = [*takewhile(bool, (self.rows.get((key, number)) for number in count()))]
        places = [row.place for row in rows if row and row.text == hash(chunk.text)]
        return chunk.place if chunk.place in places else places[0] if len(rows) == len(places) == 1 else None


class SourceOrders:
    """Decides the orders of sources that retrieved chunks alone do not tell, and caches them."""

    def __init__(self) -> None:
        self._cached: dict[Any, _Decided] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Copy as an empty cache: a copy has other stores, and ids mean nothing in another process.
        return SourceOrders, ()

    def complete(
        self,
        inputs: ContextInputs,
        options: ContextOptions,
        stores: Sequence[StoreAdapter],
        texts: SourceTexts | None = None,
        filter: Callable[[], Any] = lambda: None,
    ) -> Steps[ContextInputs]:
        """Set the place of chunks whose metadata do not tell their order, from their text or the searched stores."""
        groups = inputs.undecided(options)
        if not groups:
            return inputs
        read = None if texts is None else texts.reading(filter)
        if read is None and not stores:
            return inputs
        around = bool(options.reads_around) and inputs.read_neighbors is not None
        found: list[_Found] = yield Step(lambda: self._decide(groups, stores, read, options.source_key, around=around))
        places = {chunk.rank: place for one in found for chunk, place in zip(one.chunks, one.places, strict=True)}
        if not places:
            return inputs
        chunks = [changed(chunk, place=places.get(chunk.rank, chunk.place)) for chunk in inputs.chunks]
        reader = inputs.read_neighbors and _placing(inputs.read_neighbors, found)
        return replace(inputs, chunks=chunks, read_neighbors=reader, placed={})

    def _decide(
        self,
        groups: Sequence[Undecided],
        stores: Sequence[StoreAdapter],
        read: Callable[[Sequence[Chunk]], SourceText | None] | None,
        source_key: SourceKey | None,
        *,
        around: bool,
    ) -> list[_Found]:
        """Return the places of the chunks of each source that more than their metadata tells."""
        found: list[_Found] = []
        left: list[tuple[Sequence[Chunk], SourceText | None]] = []
        for group, strong, in_doubt in groups:
            text = read(group) if read is not None and in_doubt else None
            if text is not None and not around and all(len(text.places(chunk.text)) == 1 for chunk in group):
                # No other chunk of the source could change these places.
                found.append(_in_text(group, text))
            elif text is not None or not strong:
                left.append((group, text))
        # Each source is listed from the first store with all of its retrieved chunks.
        for store in stores:
            try:
                listed = self._in_store(store, left, source_key)
            except Exception as error:  # noqa: BLE001 - stores can raise anything; retrieval still succeeds
                listed = []
                if any(one.in_doubt for one in groups):
                    warn(
                        f"the order of insertion into {shown(store.name, _MAX_NAME_LENGTH)} cannot be read, so it is "
                        f"not used: {shown(masked_error(error), _MAX_ERROR_LENGTH, end=False)}",
                        PositionWarning,
                        cause="insertion that cannot be read",
                    )
            found += listed
            done = {id(one.chunks) for one in listed}
            left = [(group, text) for group, text in left if id(group) not in done]
        return found + [_in_text(group, text) for group, text in left if text is not None]

    def _in_store(
        self,
        store: StoreAdapter,
        groups: Sequence[tuple[Sequence[Chunk], SourceText | None]],
        source_key: SourceKey | None,
    ) -> list[_Found]:
        """Return the places of the chunks of each source that is in one store."""
        search = filter_key(store.search)
        requests: dict[Any, _Request] = {}
        for group, text in groups:
            keys = _occurrences(map(store.key, group))
            if len(keys) == len(group):
                request = _Request(group, keys, field_of(group, source_key), text)
                read = None if text is None else hash(text.text)
                requests[id(store.store), search, request.field, request.source, read] = request
        now = time.monotonic()
        cached = {name: one for name in requests if (one := self._cached.get(name)) and now < one.until}
        decided = {name: one for name, one in cached.items() if one.is_current(requests[name])}
        if decided:
            rows = _rows(store, [requests[name] for name in decided])
            decided = {name: one for name, one in decided.items() if one.agrees(requests[name], rows)}
        missing = {name: request for name, request in requests.items() if name not in decided}
        # Listings that were refused or too long are not tried again at once.
        failed = {request.source for name, request in missing.items() if name in cached and not cached[name].listed}
        for name, one in zip(missing, _read(store, [*missing.values()], failed), strict=True):
            self._cached[name] = one
            if one.covers(missing[name]):
                decided[name] = one
        # Copy the values: another thread may change the dictionary.
        if sum(len(one.rows) + 1 for one in list(self._cached.values())) > _CACHE_SIZE:
            self._cached.clear()
        return [
            _Found(requests[name].chunks, [one.rows[key].place for key in requests[name].keys], one.place_of)
            for name, one in decided.items()
        ]


class _Found(NamedTuple):
    """The places of the retrieved chunks of a source, and those of its other chunks."""

    chunks: Sequence[Chunk]
    places: Sequence[Place]
    place_of: Callable[[Chunk], Place | None]


def _in_text(chunks: Sequence[Chunk], text: SourceText) -> _Found:
    def places(chunks: Sequence[Chunk]) -> Sequence[Place]:
        return order_of(Listing(chunks), None, text).places

    return _Found(chunks, places(chunks), lambda chunk: places([chunk])[0])


def _occurrences(keys: Iterable[str | None]) -> list[_Key]:
    """Pair each key with the number of equal keys before it; skips None."""
    before: Counter[str] = Counter()
    numbered: list[_Key] = []
    for key in keys:
        if key is not None:
            numbered.append((key, before[key]))
            before[key] += 1
    return numbered


def _rows(store: StoreAdapter, requests: Sequence[_Request]) -> dict[_Key, int] | None:
    """Return the current row of each chunk in insertion order; None if the store does not remember it."""
    keys = store.in_sequence({key for one in requests for key, _ in one.keys})
    return None if keys is None else {key: row for row, key in enumerate(_occurrences(keys))}


def _read(store: StoreAdapter, requests: Sequence[_Request], failed: Collection[str]) -> Iterator[_Decided]:
    """Decide the order of each source, from all of its chunks if the store lists them, else from those retrieved."""
    listed = _listed(store, [one for one in requests if one.source not in failed])
    rows: dict[_Key, int] | None = None
    for one in requests:
        stored = list(each_once(listed.get(one.source, ())))
        if stored:
            chunks = [chunk_of_row(row, rank) for rank, row in enumerate(stored)]
            listing = Listing(chunks, in_sequence=store.in_insertion_order, complete=True, store=store.name)
            yield _decision(store, listing, [row.key for row in stored], one.text)
            continue
        if rows is None:
            rows = _rows(store, requests) or {}
        # Skip keys that several chunks share: these can be from another source.
        unique = {key: chunk for key, chunk in zip(one.keys, one.chunks, strict=True) if (key[0], 1) not in rows}
        in_sequence = sorted(unique.keys() & rows.keys(), key=rows.__getitem__)
        listing = Listing([unique[key] for key in in_sequence], in_sequence=True, store=store.name)
        yield _decision(store, listing, [key for key, _ in in_sequence], one.text)


def _listed(store: StoreAdapter, requests: Sequence[_Request]) -> dict[str, list[StoredChunk]]:
    """List the chunks of each source; empty if the store cannot list them, or beyond the bounds."""
    fields, sources = {one.field for one in requests}, {one.source for one in requests}
    if len(fields) != 1 or fields == {""} or not has_own_adapter(store.store):
        return {}
    (field,) = fields
    until = time.monotonic() + _MAX_TIME
    listed: dict[str, list[StoredChunk]] = {source: [] for source in sources}
    for number, chunk in enumerate(chunks_in_search(store, field, sources) or ()):
        if number >= _MAX_CHUNKS or time.monotonic() > until:
            return {}
        listed[source_in(chunk, field) or ""].append(chunk)
    return listed


def _decision(store: StoreAdapter, listing: Listing, names: Sequence[str], text: SourceText | None) -> _Decided:
    keys = _occurrences(names)
    order = order_of(listing, None, text)
    rows = {
        key: _Row(number, place, hash(chunk.text), _stated(chunk))
        for number, (key, chunk, place) in enumerate(zip(keys, listing.chunks, order.places, strict=True))
    }
    # An order that nothing contradicts is checked by the sequence of the retrieved chunks.
    checked = listing.complete and listing.in_sequence and not order.uncertain
    until = math.inf if checked else time.monotonic() + _MAX_AGE
    return _Decided(rows, listing.complete, until, store)


def _stated(chunk: Chunk) -> int:
    return hash((chunk.span, stated_place(with_usual_fields(chunk.metadata))))


def _placing(read: NeighborReader, found: Collection[_Found]) -> NeighborReader:
    """Wrap a neighbor reader so that the places of the neighbors are set."""
    of_source = {one.chunks[0].source: one.place_of for one in found}

    def place_of(source: str, chunk: Chunk) -> Place | None:
        return of_source[source](chunk) if source in of_source else None

    with_places = getattr(read, "with_places", None)
    inner = read if with_places is None else with_places(place_of)
    return lambda chunk, number: [changed(one, place=place_of(chunk.source or "", one)) for one in inner(chunk, number)]
