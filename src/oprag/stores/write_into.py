"""Writes the positions found for the chunks of a store to their metadata."""

from __future__ import annotations

from typing import Any

from oprag.errors import OptionError
from oprag.options import SourceKey, check_bool, check_key, refuse_filter
from oprag.positions.source_reader import ReadSource, as_reader
from oprag.positions.write import WrittenPositions, plan_positions
from oprag.stores.adapter import StoreAdapter
from oprag.stores.listing import chunk_of_row, each_once

__all__ = ["write_into"]


def write_into(
    adapter: StoreAdapter | None,
    given: Any,
    *,
    read_source: ReadSource | None,
    trust_store_order: bool,
    source_key: SourceKey | None,
    dry_run: bool,
) -> WrittenPositions:
    """Write the positions of all chunks whose order is uncertain; messages name what the caller has given."""
    check_key("source_key", source_key)
    check_bool("trust_store_order", trust_store_order)
    check_bool("dry_run", dry_run)
    refuse_filter("read_source", read_source, "write_positions searches nothing")
    stored = adapter.chunks() if adapter is not None and adapter.writable else None
    if adapter is None or stored is None:
        raise OptionError(
            f"oprag cannot list and update the chunks of a {type(given).__name__}; if it searches a store, pass that "
            "store; otherwise stamp positions before you add chunks, pass read_source= to the retriever, or update the "
            "metadata with the results of locate_positions(chunks, texts)",
            given,
        )
    rows = enumerate(each_once(stored))
    written = plan_positions(
        [row.as_chunk(rank) if row.node is None else chunk_of_row(row, rank) for rank, row in rows],
        adapter.name,
        in_insertion_order=adapter.in_insertion_order,
        read_source=as_reader(read_source),
        trust_store_order=trust_store_order,
        source_key=source_key,
        dry_run=dry_run,
    )
    if written.added and not dry_run:
        adapter.write(written.added)
    return written
