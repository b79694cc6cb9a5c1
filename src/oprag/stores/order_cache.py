"""Asking stores for the sequence in which they received the chunks of a source, once a question."""

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
from oprag.masking import describe, masked_error
from oprag.options import ContextOptions
from oprag.positions.insertion_order import InsertionOrder, StoredChunk, occurrences, read_insertion_order
from oprag.positions.sources import SourceKey, field_of
from oprag.steps import Step, Steps
from oprag.stores.adapter import StoreAdapter
from oprag.stores.listing import chunks_of_sources
from oprag.warn import warn

__all__ = ["InsertionOrderCache"]

# How many chunks are remembered, of all sources together.
_REMEMBERED = 200_000
_REFUTED = 60.0  # seconds until a sequence that was refuted is read again

_Key = tuple[str, int]


class _Wanted(NamedTuple):
    """The retrieved chunks of a source whose order is not known.

    Attributes:
        chunks: The chunks.
        keys: Their keys, each with the number of equal ones before it: chunks with one text are interchangeable.
        field: The metadata key that names their source; empty where no key has its name.
    """

    chunks: Sequence[Chunk]
    keys: Sequence[_Key]
    field: str

    @property
    def source(self) -> str:
        return self.chunks[0].source or ""


class _Known(NamedTuple):
    """The order that was found for a source.

    Attributes:
        order: The order.
        rows: The row of each chunk, in the sequence of the store.
        texts: The hash of each text, since another text under the same key is another chunk.
        until: When it is read again.
        store: The store; as long as it is held, no other one has its identity.
    """

    order: InsertionOrder
    rows: Mapping[_Key, int]
    texts: Mapping[_Key, int]
    until: float
    store: Any

    def has(self, wanted: _Wanted) -> bool:
        """Whether it is about these chunks."""
        chunks = zip(wanted.keys, wanted.chunks, strict=True)
        return time.monotonic() < self.until and all(self.texts.get(key) == hash(chunk.text) for key, chunk in chunks)

    def agrees(self, wanted: _Wanted, now: Mapping[_Key, int]) -> bool:
        """Whether the store has these chunks in the same sequence now, by their rows."""
        if any(key not in now for key in wanted.keys):
            return False
        rows = [self.rows[key] for key in sorted(wanted.keys, key=now.__getitem__)]
        return rows == sorted(rows)


class InsertionOrderCache:
    """The sequences in which stores received the chunks of sources.

    What was found for a source is remembered. It is used as long as the retrieved chunks have the same texts, and the
    store has them in the same sequence, for which every question asks.
    """

    def __init__(self) -> None:
        self._known: dict[Any, _Known] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has other stores, and identities mean nothing in another process.
        return InsertionOrderCache, ()

    def complete(
        self, inputs: ContextInputs, options: ContextOptions, stores: Callable[[], Iterable[StoreAdapter]]
    ) -> Steps[ContextInputs]:
        """Give chunks whose metadata do not tell their order their place in the store.

        Args:
            inputs: The inputs of a context.
            options: The options of the context.
            stores: Returns what was searched; of several, a source is taken from the first that has all of its chunks.
        """
        groups = inputs.without_order(options)
        searched = list(stores()) if groups else []
        if not searched:
            return inputs
        try:
            orders = yield Step(lambda: self._orders(searched, groups, options.source_key))
        except OpragWarning:
            raise
        except Exception as error:  # noqa: BLE001 - stores raise what they like, and the question has its chunks
            _warn_of_failure(searched, error)
            return inputs
        places = {
            chunk.rank: order.places[key]
            for wanted, _, order in orders
            for chunk, key in zip(wanted.chunks, wanted.keys, strict=True)
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
    ) -> list[tuple[_Wanted, StoreAdapter, InsertionOrder]]:
        """The order of each source, for those that a store has; no store has one of the others."""
        found: list[tuple[_Wanted, StoreAdapter, InsertionOrder]] = []
        left = list(groups)
        for store in stores:
            wanted = [one for group in left if (one := _wanted(store, group, source_key)) is not None]
            for one, order in zip(wanted, self._in_store(store, wanted), strict=True):
                if not order.refuted and all(key in order.places for key in one.keys):
                    found.append((one, store, order))
                    left.remove(one.chunks)
        return found

    def _in_store(self, store: StoreAdapter, wanted: Sequence[_Wanted]) -> list[InsertionOrder]:
        """The order of each source in one store."""
        names = [(id(store.store), repr(store.search), one.field, one.source) for one in wanted]
        known: dict[int, _Known] = {}
        for index, about in enumerate(wanted):
            one = self._known.get(names[index])
            if one is not None and one.has(about):
                known[index] = one
        if known:
            rows = _rows(store, [wanted[index] for index in known]) or {}
            known = {index: one for index, one in known.items() if one.agrees(wanted[index], rows)}
        unknown = [index for index in range(len(wanted)) if index not in known]
        for index, one in zip(unknown, _read(store, [wanted[index] for index in unknown]), strict=True):
            if one.order.refuted:
                _warn_of(wanted[index].source, one.order.refuted)
            known[index] = self._known[names[index]] = one
        # A copy, since another thread may add to it.
        if sum(len(one.texts) + 1 for one in list(self._known.values())) > _REMEMBERED:
            self._known.clear()
        return [known[index].order for index in range(len(wanted))]


def _wanted(store: StoreAdapter, chunks: Sequence[Chunk], source_key: SourceKey | None) -> _Wanted | None:
    """The question to the store about the chunks of a source; None if one of them has no key."""
    keys = occurrences(map(store.key, chunks))
    return _Wanted(chunks, keys, field_of(chunks, source_key)) if len(keys) == len(chunks) else None


def _rows(store: StoreAdapter, wanted: Sequence[_Wanted]) -> dict[_Key, int] | None:
    """The chunks in the sequence that the store has now; None where it does not remember one."""
    keys = store.in_sequence({key for one in wanted for key, _ in one.keys})
    return None if keys is None else {key: row for row, key in enumerate(occurrences(keys))}


def _read(store: StoreAdapter, wanted: Sequence[_Wanted]) -> list[_Known]:
    """The order of each source, by all of its chunks if the store can list them, else by those that were retrieved."""
    if not wanted:
        return []
    fields = {one.field for one in wanted}
    field = next(iter(fields)) if len(fields) == 1 else ""
    sources = {one.source for one in wanted}
    listed = chunks_of_sources(store, field, sources) if store.in_insertion_order else None
    chunks = listed or {source: [] for source in sources}
    left = [one for one in wanted if not chunks[one.source]]
    if left and (rows := _rows(store, left)) is not None:
        for one in left:
            # A key that several chunks have can be that of another source.
            sure = {key: chunk for key, chunk in zip(one.keys, one.chunks, strict=True) if (key[0], 1) not in rows}
            texts = {key: chunk.text for key, chunk in sure.items() if key in rows}
            chunks[one.source] = [StoredChunk(key[0], texts[key]) for key in sorted(texts, key=rows.__getitem__)]
    return [_judged(chunks[one.source], store) for one in wanted]


def _judged(chunks: Sequence[StoredChunk], store: StoreAdapter) -> _Known:
    order = read_insertion_order(chunks, store.name) if chunks else InsertionOrder({})
    keys = occurrences(chunk.key for chunk in chunks)
    rows = {key: row for row, key in enumerate(keys)}
    hashes = {key: hash(chunk.text) for key, chunk in zip(keys, chunks, strict=True)}
    return _Known(order, rows, hashes, time.monotonic() + _REFUTED if order.refuted else math.inf, store.store)


def _placing(read: NeighborReader, orders: Iterable[tuple[_Wanted, StoreAdapter, InsertionOrder]]) -> NeighborReader:
    """As this reader, with the places of the neighbors in the store."""
    of_source = {wanted.source: (store, order.places) for wanted, store, order in orders}

    def read_placed(chunk: Chunk, number: int) -> list[Chunk]:
        around = list(read(chunk, number))
        if chunk.source not in of_source:
            return around
        store, places = of_source[chunk.source]
        return [changed(one, store_place=_place_of(one, store, places)) for one in around]

    return read_placed


def _place_of(chunk: Chunk, store: StoreAdapter, places: Mapping[_Key, StorePlace]) -> StorePlace | None:
    """The place of a chunk that was not retrieved; None where several have its key."""
    key = store.key(chunk)
    return None if key is None or (key, 1) in places else places.get((key, 0))


def _warn_of_failure(stores: Sequence[StoreAdapter], error: Exception) -> None:
    names = ", ".join(store.name for store in stores)
    warn(
        f"the sequence in which {names} received the chunks of a source cannot be read, so it is not used: "
        f"{masked_error(error)}",
        PositionWarning,
        cause="insertion that cannot be read",
    )


def _warn_of(source: str, why: str) -> None:
    warn(
        f"the sequence in which the store received the chunks of {describe(source)} is not used: {why}; stamp "
        "positions at ingestion, or remove the source from the store and add it again",
        PositionWarning,
        cause=f"insertion: {why}",
    )
