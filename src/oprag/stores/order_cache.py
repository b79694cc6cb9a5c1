"""Reads the insertion order of retrieved sources from stores, in one request per question, and caches it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from oprag.assembly.neighbors import NeighborReader
from oprag.chunk import Chunk, StorePlace, changed
from oprag.context import ContextInputs
from oprag.errors import OpragWarning, PositionWarning
from oprag.filter_key import filter_key
from oprag.masking import describe, masked_error
from oprag.options import ContextOptions
from oprag.positions.insertion_order import InsertionOrder, StoredChunk, occurrences, read_insertion_order
from oprag.positions.sources import SourceKey, field_of
from oprag.steps import Step, Steps
from oprag.stores.adapter import StoreAdapter
from oprag.stores.listing import chunks_of_sources
from oprag.warn import warn

__all__ = ["InsertionOrderCache"]

_CACHE_SIZE = 200_000  # chunks of all sources together
_MAX_REFUTED_AGE = 60.0  # seconds until a refuted insertion order is read again

_Key = tuple[str, int]


class _OrderRequest(NamedTuple):
    """The retrieved chunks of a source whose order is uncertain.

    Attributes:
        chunks: The chunks.
        keys: Their keys, each with the number of equal keys before it: chunks with equal keys are interchangeable.
        field: The metadata key that contains the name of their source; empty if no key does.
    """

    chunks: Sequence[Chunk]
    keys: Sequence[_Key]
    field: str

    @property
    def source(self) -> str:
        return self.chunks[0].source or ""


class _CachedOrder(NamedTuple):
    """The cached insertion order of a source.

    Attributes:
        order: The insertion order.
        rows: The row of each chunk, in insertion order.
        texts: The hash of each text: another text under the same key is another chunk.
        until: The time at which it is read again.
        store: The store. Keeping the reference keeps its id (part of the cache key) unique.
    """

    order: InsertionOrder
    rows: Mapping[_Key, int]
    texts: Mapping[_Key, int]
    until: float
    store: Any

    def covers(self, request: _OrderRequest) -> bool:
        """Return whether it has not expired and contains all of these chunks with the same texts."""
        chunks = zip(request.keys, request.chunks, strict=True)
        return time.monotonic() < self.until and all(self.texts.get(key) == hash(chunk.text) for key, chunk in chunks)

    def agrees(self, request: _OrderRequest, now: Mapping[_Key, int]) -> bool:
        """Return whether the store currently has these chunks in the same order, given their current rows."""
        if any(key not in now for key in request.keys):
            return False
        rows = [self.rows[key] for key in sorted(request.keys, key=now.__getitem__)]
        return rows == sorted(rows)


class InsertionOrderCache:
    """A cache of the insertion order of sources.

    An entry is valid as long as the retrieved chunks have the same texts, and the store returns them in the same order,
    which is checked with one request per question.
    """

    def __init__(self) -> None:
        self._cached: dict[Any, _CachedOrder] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Copy as an empty cache: a copy has other stores, and ids mean nothing in another process.
        return InsertionOrderCache, ()

    def complete(
        self, inputs: ContextInputs, options: ContextOptions, stores: Callable[[], Iterable[StoreAdapter]]
    ) -> Steps[ContextInputs]:
        """Set `store_place` of chunks whose metadata do not tell their order.

        Args:
            inputs: The inputs of a context.
            options: The options of the context.
            stores: Returns the stores that were searched; each source is read from the first one with all of its
                chunks.
        """
        groups = inputs.without_order(options)
        searched = list(stores()) if groups else []
        if not searched:
            return inputs
        try:
            orders = yield Step(lambda: self._orders(searched, groups, options.source_key))
        except OpragWarning:
            raise
        except Exception as error:  # noqa: BLE001 - stores can raise anything; retrieval still succeeds
            _warn_of_failure(searched, error)
            return inputs
        places = {
            chunk.rank: order.places[key]
            for request, _, order in orders
            for chunk, key in zip(request.chunks, request.keys, strict=True)
        }
        if not places:
            return inputs
        chunks = [
            changed(chunk, store_place=places[chunk.rank]) if chunk.rank in places else chunk for chunk in inputs.chunks
        ]
        reader = inputs.read_neighbors and _placing(inputs.read_neighbors, orders)
        return replace(inputs, chunks=chunks, read_neighbors=reader, placed={})

    def _orders(
        self, stores: Sequence[StoreAdapter], groups: Sequence[Sequence[Chunk]], source_key: SourceKey | None
    ) -> list[tuple[_OrderRequest, StoreAdapter, InsertionOrder]]:
        """Return the insertion order of each source that has one in a store."""
        found: list[tuple[_OrderRequest, StoreAdapter, InsertionOrder]] = []
        left = list(groups)
        for store in stores:
            requests = [one for group in left if (one := _request(store, group, source_key)) is not None]
            for one, order in zip(requests, self._in_store(store, requests), strict=True):
                if not order.refuted and all(key in order.places for key in one.keys):
                    found.append((one, store, order))
                    left.remove(one.chunks)
        return found

    def _in_store(self, store: StoreAdapter, requests: Sequence[_OrderRequest]) -> list[InsertionOrder]:
        """Return the insertion order of each source in one store."""
        search = filter_key(store.search)
        names = [(id(store.store), search, one.field, one.source) for one in requests]
        found: dict[int, _CachedOrder] = {}
        for index, request in enumerate(requests):
            one = self._cached.get(names[index])
            if one is not None and one.covers(request):
                found[index] = one
        if found:
            rows = _rows(store, [requests[index] for index in found]) or {}
            found = {index: one for index, one in found.items() if one.agrees(requests[index], rows)}
        missing = [index for index in range(len(requests)) if index not in found]
        for index, one in zip(missing, _read(store, [requests[index] for index in missing]), strict=True):
            if one.order.refuted:
                _warn_of_refuted(requests[index].source, one.order.refuted)
            found[index] = self._cached[names[index]] = one
        # Copy the values: another thread may change the dictionary.
        if sum(len(one.texts) + 1 for one in list(self._cached.values())) > _CACHE_SIZE:
            self._cached.clear()
        return [found[index].order for index in range(len(requests))]


def _request(store: StoreAdapter, chunks: Sequence[Chunk], source_key: SourceKey | None) -> _OrderRequest | None:
    """Return the request to the store for the chunks of a source; None if one of them has no key."""
    keys = occurrences(map(store.key, chunks))
    return _OrderRequest(chunks, keys, field_of(chunks, source_key)) if len(keys) == len(chunks) else None


def _rows(store: StoreAdapter, requests: Sequence[_OrderRequest]) -> dict[_Key, int] | None:
    """Return the current row of each chunk in insertion order; None if the store does not remember it."""
    keys = store.in_sequence({key for one in requests for key, _ in one.keys})
    return None if keys is None else {key: row for row, key in enumerate(occurrences(keys))}


def _read(store: StoreAdapter, requests: Sequence[_OrderRequest]) -> list[_CachedOrder]:
    """Read the insertion order of each source, of all its chunks if the store lists them, else of those retrieved."""
    if not requests:
        return []
    fields = {one.field for one in requests}
    field = next(iter(fields)) if len(fields) == 1 else ""
    sources = {one.source for one in requests}
    listed = chunks_of_sources(store, field, sources) if store.in_insertion_order else None
    chunks = listed or {source: [] for source in sources}
    left = [one for one in requests if not chunks[one.source]]
    if left and (rows := _rows(store, left)) is not None:
        for one in left:
            # Skip keys that several chunks share: these can be from another source.
            unique = {key: chunk for key, chunk in zip(one.keys, one.chunks, strict=True) if (key[0], 1) not in rows}
            texts = {key: chunk.text for key, chunk in unique.items() if key in rows}
            chunks[one.source] = [StoredChunk(key[0], texts[key]) for key in sorted(texts, key=rows.__getitem__)]
    return [_checked(chunks[one.source], store) for one in requests]


def _checked(chunks: Sequence[StoredChunk], store: StoreAdapter) -> _CachedOrder:
    order = read_insertion_order(chunks, store.name) if chunks else InsertionOrder({})
    keys = occurrences(chunk.key for chunk in chunks)
    rows = {key: row for row, key in enumerate(keys)}
    hashes = {key: hash(chunk.text) for key, chunk in zip(keys, chunks, strict=True)}
    until = time.monotonic() + _MAX_REFUTED_AGE if order.refuted else math.inf
    return _CachedOrder(order, rows, hashes, until, store.store)


def _placing(
    read: NeighborReader, orders: Iterable[tuple[_OrderRequest, StoreAdapter, InsertionOrder]]
) -> NeighborReader:
    """Wrap a neighbor reader so that `store_place` of the neighbors is set."""
    of_source = {request.source: (store, order.places) for request, store, order in orders}

    def read_placed(chunk: Chunk, number: int) -> list[Chunk]:
        around = list(read(chunk, number))
        if chunk.source not in of_source:
            return around
        store, places = of_source[chunk.source]
        return [changed(one, store_place=_place_of(one, store, places)) for one in around]

    return read_placed


def _place_of(chunk: Chunk, store: StoreAdapter, places: Mapping[_Key, StorePlace]) -> StorePlace | None:
    """Return the place of a chunk that was not retrieved; None if several chunks share its key."""
    key = store.key(chunk)
    return None if key is None or (key, 1) in places else places.get((key, 0))


def _warn_of_failure(stores: Sequence[StoreAdapter], error: Exception) -> None:
    names = ", ".join(store.name for store in stores)
    warn(
        f"the order in which chunks were added to {names} cannot be read, so it is not used: {masked_error(error)}",
        PositionWarning,
        cause="insertion that cannot be read",
    )


def _warn_of_refuted(source: str, why: str) -> None:
    warn(
        f"the order in which the chunks of {describe(source)} were added to the store is not used: {why}; stamp "
        "positions at ingestion, or remove the source from the store and add it again",
        PositionWarning,
        cause=f"insertion: {why}",
    )
