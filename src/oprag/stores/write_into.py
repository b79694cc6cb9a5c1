"""Writing the positions that are found for the chunks of a store into their metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.files.source_reader import ReadSource, as_reader
from oprag.options import check_bool, check_key
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.sources import SourceKey
from oprag.positions.write_plan import WrittenPositions, plan_positions
from oprag.stores.adapter import StoreAdapter
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
    """Write the positions of all chunks whose order is not certain.

    Args:
        adapter: The adapter of the store, or None.
        given: The argument of the caller, for messages.
        as_chunk: Makes a chunk with a rank, whose id is that of the stored one.
        read_source: As in `write_positions`.
        trust_store_order: As in `write_positions`.
        source_key: As in `write_positions`.
        dry_run: As in `write_positions`.
    """
    check_key("source_key", source_key)
    check_bool("trust_store_order", trust_store_order)
    check_bool("dry_run", dry_run)
    reader = as_reader(read_source)
    # A function may require the filter of a search, and there is none here.
    reader = reader and reader.filtered(lambda: None)
    stored = adapter.chunks() if adapter is not None and adapter.writable else None
    if adapter is None or stored is None:
        raise OptionError(
            f"oprag cannot list and change the chunks of a {type(given).__name__}; if it searches a store, give that "
            "store, else find positions with locate_positions(chunks, source_texts) and update the metadata yourself",
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
