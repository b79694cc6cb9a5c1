"""Writes the positions found for the chunks of a store to their metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.files.source_reader import ReadSource, as_reader
from oprag.options import check_bool, check_key
from oprag.positions.sources import SourceKey
from oprag.positions.write_plan import WrittenPositions, plan_positions
from oprag.stores.adapter import StoreAdapter, StoredChunk
from oprag.stores.listing import each_once

__all__ = ["write_into"]


def write_into(
    adapter: StoreAdapter | None,
    given: Any,
    as_chunk: Callable[[StoredChunk, int], Chunk],
    *,
    read_source: ReadSource | None,
    trust_store_order: bool,
    source_key: SourceKey | None,
    dry_run: bool,
) -> WrittenPositions:
    """Write the positions of all chunks whose order is uncertain.

    Args:
        adapter: The adapter of the store; None if the store has none.
        given: The caller's argument, for messages.
        as_chunk: Converts a stored chunk to a `Chunk` with the same id and the given rank.
        read_source: As in `write_positions`.
        trust_store_order: As in `write_positions`.
        source_key: As in `write_positions`.
        dry_run: As in `write_positions`.
    """
    check_key("source_key", source_key)
    check_bool("trust_store_order", trust_store_order)
    check_bool("dry_run", dry_run)
    reader = as_reader(read_source)
    # Outside a search, a function that requires a filter cannot get one.
    reader = reader and reader.filtered(lambda: None)
    stored = adapter.chunks() if adapter is not None and adapter.writable else None
    if adapter is None or stored is None:
        raise OptionError(
            f"oprag cannot list and update the chunks of a {type(given).__name__}; if it searches a store, pass that "
            "store; otherwise find positions with locate_positions(chunks, source_texts) and update the metadata "
            "yourself",
            given,
        )
    written = plan_positions(
        [as_chunk(one, rank) for rank, one in enumerate(each_once(stored))],
        adapter.name,
        in_insertion_order=adapter.in_insertion_order,
        read_source=reader,
        trust_store_order=trust_store_order,
        source_key=source_key,
        dry_run=dry_run,
    )
    if written.added and not dry_run:
        adapter.write(written.added)
    return written
