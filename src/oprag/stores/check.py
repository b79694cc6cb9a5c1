"""Checks the positions of the chunks in the stores that are searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from oprag.chunk import Chunk
from oprag.options import ContextOptions, PositionKey, SourceKey, refuse_filter
from oprag.positions.check import Checked, check_listings, given_chunks
from oprag.positions.check_report import PositionCheck
from oprag.positions.source_reader import ReadSource, as_reader
from oprag.positions.suggestions import Suggestions
from oprag.stores.adapter import StoreAdapter, StoredChunk, has_own_adapter
from oprag.stores.listing import chunks_in_search, chunks_of_rows

__all__ = ["check_searched"]


def check_searched(
    searched: Any,
    stores: Iterable[StoreAdapter],
    suggestions: Suggestions,
    chunks_of: Callable[[Any], Iterable[Chunk]],
    *,
    retriever: Any = None,
    read_source: ReadSource | None,
    source_key: SourceKey | None,
    position_key: PositionKey | None,
    max_chunks: int,
    as_chunks: Callable[[StoreAdapter, Iterable[StoredChunk]], Iterable[Chunk]] = lambda _, rows: chunks_of_rows(rows),
    store_order: bool = True,
    writable: bool = True,
) -> PositionCheck:
    """Check the chunks that a search can find, as a retriever would order them, or those that were passed."""
    if retriever is not None:
        source_key, position_key = source_key or retriever.source_key, position_key or retriever.position_key
        read_source = retriever.read_source if read_source is None else read_source
        store_order = store_order and retriever.store_order
    refuse_filter("read_source", read_source, "check_positions asks no question")
    rows_of = [(store, rows) for store in stores if (rows := chunks_in_search(store)) is not None]
    listings = [
        Checked(one.name, as_chunks(one, rows), store_order and one.in_insertion_order, has_own_adapter(one.store))
        for one, rows in rows_of
    ]
    return check_listings(
        listings or [given_chunks(searched, suggestions.chunks, chunks_of)],
        ContextOptions(source_key=source_key, position_key=position_key),
        replace(
            suggestions,
            writable=writable and any(store.writable for store, _ in rows_of),
            deletable=bool(rows_of) and all(store.deletable for store, _ in rows_of),
            filtered=any(store.restrictions for store, _ in rows_of),
        ),
        max_chunks=max_chunks,
        read_source=as_reader(read_source),
    )
