"""Checks the positions of the chunks in searched stores, and writes those that their metadata lack."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from oprag._internal.masking import clean
from oprag.chunk import Chunk, PositionKind, changed, counted
from oprag.errors import OptionError
from oprag.options import ContextOptions, PositionKey, SourceKey, check_bool, check_key, refuse_filter
from oprag.positions.check import Checked, check_listings, given_chunks, order_by_text
from oprag.positions.check_report import PositionCheck, shown_name, source_table
from oprag.positions.fields import NUMBERING_FIELD, STAMP_FIELD
from oprag.positions.readings import LOCATED, TIES_BY_STORE, page_of, stamped_by_store
from oprag.positions.retrieved import place
from oprag.positions.source_names import warn_about_key
from oprag.positions.source_order import BY_STORE, Listing, SourceOrder
from oprag.positions.source_reader import ReadSource, as_reader
from oprag.positions.stamp import numbering_of
from oprag.positions.suggestions import Suggestions
from oprag.positions.values import comparable
from oprag.stores.adapter import StoreAdapter, StoredChunk, has_own_adapter
from oprag.stores.listing import chunk_of_row, chunks_in_search, chunks_of_rows, each_once

__all__ = ["WrittenPositions", "WrittenSource", "check_searched", "plan_positions", "write_into"]

_HEAD = ("source", "chunks", "written", "position from", "note")
_UNNAMED = "these chunks do not name their source; name it with source_key=..."
_NOT_TRUSTED = "nothing is written without its text (read_source=...) or trust_store_order=True"


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


class WrittenSource(NamedTuple):
    """The result of `write_positions` for one source.

    Attributes:
        source: Name of the source; None for chunks that do not name one.
        chunks: Number of its chunks in the store.
        written: Number of chunks whose position was added or changed.
        kind: How the positions are known.
        field: The origin of the positions, in words.
        note: Why some or all positions were not written, and what is uncertain; empty otherwise.
    """

    source: str | None
    chunks: int
    written: int
    kind: PositionKind
    field: str
    note: str = ""


@dataclass(frozen=True, repr=False)
class WrittenPositions:
    """The result of `write_positions`, or of a dry run; prints as a table.

    Attributes:
        sources: The results for sources whose order was uncertain.
        chunks: Number of chunks in the store.
        known: Number of other sources, which need no positions: their order is known already, or they have one chunk.
        dry_run: Whether this is a dry run, which writes nothing.
        added: The metadata that were added, by chunk id.
    """

    sources: tuple[WrittenSource, ...]
    chunks: int
    known: int
    dry_run: bool
    added: dict[str, dict[str, object]]

    @property
    def written(self) -> int:
        """Number of chunks whose position was added or changed."""
        return sum(one.written for one in self.sources)

    def __repr__(self) -> str:
        verb = "would be written" if self.dry_run else "were written"
        known = f"; the order of {counted(self.known, 'other source')} is known" if self.known else ""
        summary = f"positions of {self.written:,} of {counted(self.chunks, 'chunk')} {verb}{known}"
        # Sources with a note come first.
        rows = [
            [shown_name(one.source), f"{one.chunks:,}", f"{one.written:,}", one.field or "-", one.note]
            for one in sorted(self.sources, key=lambda one: not one.note)
        ]
        return clean("\n".join(source_table(summary, _HEAD, rows)))


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
    chunks = [row.as_chunk(rank) if row.node is None else chunk_of_row(row, rank) for rank, row in rows]
    listing = Listing(chunks, adapter.in_insertion_order, complete=True, store=adapter.name)
    written = plan_positions(
        listing, as_reader(read_source), trusted=trust_store_order, source_key=source_key, dry_run=dry_run
    )
    if written.added and not dry_run:
        adapter.write(written.added)
    return written


def plan_positions(
    listing: Listing,
    read_source: Callable[[str], str] | None,
    *,
    trusted: bool,
    source_key: SourceKey | None,
    dry_run: bool,
) -> WrittenPositions:
    """Find the positions that the metadata of all chunks of a store lack; the ranks of the chunks are their indexes."""
    chunks = listing.chunks
    warn_about_key("source_key", source_key, chunks)
    # Ignore links: they can order all chunks of a source, but not always the subset that a query retrieves.
    unlinked = [changed(chunk, previous_id=None, next_id=None, parent_id=None, child_ids=()) for chunk in chunks]
    placed = place(unlinked, source_key, None)
    repeated = {key for key, times in Counter(chunk.id for chunk in chunks).items() if times > 1}
    sources: list[WrittenSource] = []
    added: dict[str, dict[str, object]] = {}
    known = 0
    unnamed = sum(isinstance(name, int) for name in placed.groups)
    if unnamed:
        sources.append(WrittenSource(None, unnamed, 0, PositionKind.NONE, "", _UNNAMED))
    for name, members in placed.groups.items():
        if isinstance(name, int):
            continue
        # The text of a source takes precedence over numbers that were written from the order of the store.
        by_store = read_source is not None and stamped_by_store(members)
        if len(members) < 2 or not (placed.orders[name].doubts_among() or by_store):
            known += 1
            continue
        group = [changed(chunks[member.rank], source=name) for member in members]
        source, new = _plan_source(listing._replace(chunks=group), read_source, repeated, trusted=trusted)
        sources.append(source)
        added |= new
    return WrittenPositions(tuple(sources), len(chunks), known, dry_run, added)


def _plan_source(
    listing: Listing, read_source: Callable[[str], str] | None, repeated: Collection[str | None], *, trusted: bool
) -> tuple[WrittenSource, dict[str, dict[str, object]]]:
    """Return the report on a source, and the metadata to add by chunk id."""
    group, name = listing.chunks, listing.chunks[0].source or ""
    order, _, unread = order_by_text(listing, read_source, trusted=trusted)
    notes: list[str] = []
    if unread:
        notes.append(f"its text cannot be read: {unread}")
    elif read_source is not None and None in order.spans:
        notes.append(f"{counted(order.spans.count(None), 'chunk')} not found in its text, or at several places")
    causes = order.doubts_among()
    notes += causes
    alike = {index for index, chunk in enumerate(group) if chunk.id in repeated}
    if alike:
        notes.append(f"{counted(len(alike), 'chunk')} with a duplicate id")
    # The caller may trust the store to order chunks.
    unsure = [indices for cause, indices in causes.items() if not (trusted and cause in BY_STORE)]
    left = alike.union(*unsure, (index for index, key in enumerate(order.keys) if key is None))
    if len(left) == len(group):
        by_store = causes and not trusted and BY_STORE.issuperset(causes)
        notes.append(_NOT_TRUSTED if by_store else "nothing is written")
    elif left:
        notes.append(f"{counted(len(left), 'chunk')} left out")
    positions = _numbered(order, left)
    added = {
        chunk.id: positions[index]
        for index, chunk in enumerate(group)
        if chunk.id is not None and index in positions and not _has(chunk.metadata, positions[index])
    }
    return WrittenSource(name, len(group), len(added), order.kind, order.field, clean("; ".join(notes))), added


def _has(metadata: Mapping[str, Any], added: Mapping[str, Any]) -> bool:
    # Values of other tools may be arrays, which do not compare.
    return all(name in metadata and comparable(metadata[name]) == value for name, value in added.items())


def _numbered(order: SourceOrder, left: Collection[int]) -> dict[int, dict[str, object]]:
    """Return the position metadata of each chunk that is not left out."""
    known = sorted((key, index) for index, key in enumerate(order.keys) if key is not None and index not in left)
    # Copies (same position and text) share a number, as retrieval treats them as one chunk.
    numbers: dict[tuple[Any, str], int] = {}
    for key, index in known:
        numbers.setdefault((key, order.chunks[index].text), len(numbers))
    by_text = order.field.endswith(LOCATED)
    by_store = order.kind is PositionKind.STORE or order.field.endswith(TIES_BY_STORE)
    # What is only assumed must not be known once it is written.
    doubts = order.doubts_among([index for _, index in known])
    assumed = (by_store and not by_text) or order.certainty_with(doubts) != "known"
    numbering = numbering_of([text for _, text in numbers], assumed=assumed)
    # Retrieval reads an offset next to a page as relative to the page, of which nothing tells the start.
    in_source = by_text and all(page_of(chunk) is None for chunk in order.chunks)
    positions: dict[int, dict[str, object]] = {}
    for key, index in known:
        positions[index] = {STAMP_FIELD: numbers[key, order.chunks[index].text], NUMBERING_FIELD: numbering}
        span = order.spans[index]
        if in_source and span is not None:
            positions[index] |= {"start_index": span.start, "end_index": span.end}
    return positions
