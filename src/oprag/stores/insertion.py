"""Asking stores for the sequence in which they received the chunks of a source, once a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from oprag.chunk import Chunk, StorePlace, changed
from oprag.context import ContextInputs
from oprag.errors import PositionWarning
from oprag.masking import describe, masked_error
from oprag.options import ContextOptions
from oprag.positions.insertion import InsertionOrder, StoredChunk, occurrences, read_insertion_order
from oprag.positions.placing import place, without_order
from oprag.positions.sources import SOURCE_FIELDS, SourceKey
from oprag.steps import Step, Steps
from oprag.stores.adapter import StoreAdapter
from oprag.warn import warn

__all__ = ["InsertionOrders"]

# How many chunks are remembered, of all sources together.
_REMEMBERED = 200_000


_Places = Mapping[tuple[str, int], StorePlace]


class _Wanted(NamedTuple):
    """The retrieved chunks of a source whose order is not known.

    Attributes:
        chunks: The chunks.
        keys: Their keys, each with the number of equal ones before it: chunks with one text are interchangeable.
        field: The metadata key that names their source; None where the name is none of its values.
    """

    chunks: Sequence[Chunk]
    keys: Sequence[tuple[str, int]]
    field: str | None

    @property
    def source(self) -> str:
        return self.chunks[0].source or ""


class InsertionOrders:
    """The sequences in which stores received the chunks of sources.

    What was found for a source is remembered. It is used as long as the store has the retrieved chunks in the same
    sequence, for which every question asks without their texts.
    """

    def __init__(self) -> None:
        self._known: dict[Any, _Places] = {}

    def complete(
        self, inputs: ContextInputs, options: ContextOptions, stores: Callable[[], Iterable[StoreAdapter]]
    ) -> Steps[ContextInputs]:
        """Give chunks whose metadata do not tell their order their place in the store.

        Args:
            inputs: The inputs of a context.
            options: The options of the context.
            stores: Returns what was searched; of several, a source is taken from the first that has all of its chunks.
        """
        if options.order != "source" or options.position_key is not None:
            return inputs
        keys = options.source_key, options.position_key
        placed = inputs.placed.setdefault((*keys, options.needs_vectors), place(inputs.chunks, *keys))
        groups = without_order(placed)
        searched = list(stores()) if groups else []
        if not searched:
            return inputs
        try:
            places = yield Step(lambda: self._places(searched, groups, options.source_key))
        except Exception as error:  # noqa: BLE001 - stores raise what they like, and the question has its chunks
            _warn_of_failure(searched, error)
            return inputs
        if not places:
            return inputs
        chunks = [
            changed(chunk, store_place=places[chunk.rank]) if chunk.rank in places else chunk for chunk in inputs.chunks
        ]
        return replace(inputs, chunks=chunks, placed={})

    def _places(
        self, stores: Sequence[StoreAdapter], groups: Sequence[Sequence[Chunk]], source_key: SourceKey | None
    ) -> dict[int, StorePlace]:
        """The places of the chunks by their ranks."""
        places: dict[int, StorePlace] = {}
        for store in stores:
            left = [_wanted(store, group, source_key) for group in groups if group[0].rank not in places]
            wanted = [one for one in left if one is not None]
            for one, found in zip(wanted, self._in_store(store, wanted), strict=True):
                if all(key in found for key in one.keys):
                    places |= {chunk.rank: found[key] for chunk, key in zip(one.chunks, one.keys, strict=True)}
        return places

    def _in_store(self, store: StoreAdapter, wanted: Sequence[_Wanted]) -> list[_Places]:
        """The places of the chunks of each source by their keys."""
        names = [(type(store.store), repr(store.search), one.field, one.source) for one in wanted]
        found = [self._known.get(name, {}) for name in names]
        new = [index for index, one in enumerate(wanted) if not all(key in found[index] for key in one.keys)]
        if wanted and not new:
            rows = _rows(store, wanted) or {}
            new = [index for index, one in enumerate(wanted) if not _agrees(found[index], one, rows)]
        if new:
            read = _read(store, [wanted[index] for index in new])
            for index, order in zip(new, read, strict=True):
                if order.refuted:
                    _warn_of(wanted[index].source, order.refuted)
                found[index] = self._known[names[index]] = order.places
            if sum(map(len, self._known.values())) > _REMEMBERED:
                self._known.clear()
        return found


def _wanted(store: StoreAdapter, chunks: Sequence[Chunk], source_key: SourceKey | None) -> _Wanted | None:
    """What is asked about the chunks of a source; None where one of them has no key in the store."""
    keys = occurrences(map(store.key, chunks))
    return _Wanted(chunks, keys, _field_of(chunks, source_key)) if len(keys) == len(chunks) else None


def _field_of(chunks: Sequence[Chunk], source_key: SourceKey | None) -> str | None:
    """The metadata key whose value is the source of all of these chunks."""
    named = () if source_key is None or callable(source_key) else source_key
    fields: tuple[str, ...] = (*([named] if isinstance(named, str) else named), *SOURCE_FIELDS)
    for field in fields:
        if all(chunk.metadata.get(field) == chunk.source for chunk in chunks):
            return field
    return None


def _rows(store: StoreAdapter, wanted: Sequence[_Wanted]) -> dict[tuple[str, int], int] | None:
    """The chunks in the sequence that the store has now; None where it does not remember one."""
    keys = store.in_sequence({key for one in wanted for key, _ in one.keys})
    return None if keys is None else {key: row for row, key in enumerate(occurrences(keys))}


def _agrees(places: _Places, wanted: _Wanted, rows: Mapping[tuple[str, int], int]) -> bool:
    """Whether the retrieved chunks are in the store in the sequence that was remembered."""
    if any(key not in rows for key in wanted.keys):
        return False
    ordered = sorted((rows[key], places[key].number) for key in wanted.keys)
    return all(before <= after for (_, before), (_, after) in pairwise(ordered))


def _read(store: StoreAdapter, wanted: Sequence[_Wanted]) -> list[InsertionOrder]:
    """The order of each source, by all of its chunks if the store can list them, else by those that were retrieved."""
    fields = {one.field for one in wanted}
    field = next(iter(fields)) if len(fields) == 1 else None
    listed = None if field is None else store.chunks_of(field, {one.source for one in wanted})
    chunks: dict[str, list[StoredChunk]] = {one.source: [] for one in wanted}
    if listed is not None:
        for source, chunk in listed:
            chunks[source].append(chunk)
    elif (rows := _rows(store, wanted)) is not None:
        for one in wanted:
            # A key that several chunks have can be that of another source.
            sure = {key: chunk for key, chunk in zip(one.keys, one.chunks, strict=True) if (key[0], 1) not in rows}
            texts = {key: chunk.text for key, chunk in sure.items() if key in rows}
            chunks[one.source] = [StoredChunk(key[0], texts[key]) for key in sorted(texts, key=rows.__getitem__)]
    return [
        read_insertion_order(some, store.name) if (some := chunks[one.source]) else InsertionOrder({}) for one in wanted
    ]


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
