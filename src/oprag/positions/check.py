"""Checks how the order of each source in a store or list is known, by the same rules as retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from oprag.chunk import Chunk, PositionKind, changed, counted
from oprag.masking import clean, describe, masked_error, without_keys
from oprag.options import ContextOptions, check_count
from oprag.positions.check_report import Note, PositionCheck, SourceCheck
from oprag.positions.copies import copies_of
from oprag.positions.placing import UNNAMED, doubts, place
from oprag.positions.readings import stamped_by_store
from oprag.positions.remedies import NOT_IN_TEXT, Remedies
from oprag.positions.source_order import ADDED_AGAIN, Listing, SourceOrder, order_of
from oprag.positions.source_text import SourceText
from oprag.positions.sources import SourceKey, field_of, source_of, warn_about_key

__all__ = ["Checked", "check_listings"]

_ALL = 1_000_000_000  # more chunks than any store contains
# Simulates retrieval of a subset: links can bridge one missing chunk, but not two.
_EVERY = 3
_IN_PARTS = "all chunks together tell the order of a source, but not the subset that a search returns"
# Minimum number and share of chunks inside others of a source that was split with two chunk sizes.
_MIN_INSIDE = 3
_INSIDE = 0.05


class Checked(NamedTuple):
    """The chunks of a store, or a list of chunks from the caller.

    Attributes:
        name: The name of the store or list, for the report.
        chunks: The chunks.
        in_insertion_order: Whether the chunks are in the order in which they were added to a store.
        total: Number of chunks, if known.
        read_whole: Whether retrieval decides an order from all chunks of the source, not only the retrieved ones.
    """

    name: str
    chunks: Iterable[Chunk]
    in_insertion_order: bool = False
    total: int | None = None
    read_whole: bool = True


def check_listings(
    listings: Sequence[Checked],
    options: ContextOptions,
    remedies: Callable[[Sequence[Chunk]], Remedies],
    *,
    max_chunks: int,
    read_source: Callable[[str], str] | None = None,
) -> PositionCheck:
    """Check the order of the chunks in listings; a source in several listings is taken from the first.

    Args:
        listings: The chunks.
        options: Supplies `source_key` and `position_key`; the other options are ignored.
        remedies: Returns the lines of code for the chunks of a source; called with no chunks for general notes.
        max_chunks: Maximum number of chunks to read.
        read_source: Reads the text of a source, in which chunks of uncertain order are located.
    """
    check_count("max_chunks", max_chunks, optional=False)
    sample = _read(listings, options.source_key, max_chunks)
    warn_about_key("source_key", options.source_key, sample.chunks)
    warn_about_key("position_key", options.position_key, sample.chunks)
    total = None if any(listing.total is None for listing in listings) else sum(one.total or 0 for one in listings)
    checked = _options_as_code(options, sample, total)
    findings = [
        _with_remedy(found, replace(remedies(found.order.chunks), checked=checked))
        for found in _findings(sample, options, read_source)
    ]
    general = replace(remedies(()), checked=checked)
    checks = [_report(found) for found in findings]
    return PositionCheck(
        searched=" and ".join(dict.fromkeys(listing.name for listing in listings)),
        sources=tuple(sorted(checks, key=lambda one: (not one.problem, one.certainty == "known", -one.chunks))),
        chunks=len(sample.chunks),
        total=total if len(listings) == 1 else None,
        sampled=sample.sampled,
        partial_source=sample.partial_source,
        notes=tuple(_notes(findings, general)),
        module=general.module,
    )


def _options_as_code(options: ContextOptions, sample: _Sample, total: int | None) -> str:
    """Return the options for a check that reads the same sources with all of their chunks."""
    keys = {"source_key": options.source_key, "position_key": options.position_key}
    given = [f"{name}={name if callable(key) else repr(key)}" for name, key in keys.items() if key is not None]
    if sample.sampled:
        given.append(f"max_chunks={total or _ALL}")
    return "".join(f", {one}" for one in given)


class _Sample(NamedTuple):
    """The chunks that were read.

    Attributes:
        chunks: The chunks; their ranks are their indexes in this list.
        listings: The listing that the chunks of each source come from.
        sampled: Whether there are more chunks than were read.
        partial_source: Name of the source that was dropped because the sample ends in the middle of it.
    """

    chunks: list[Chunk]
    listings: Mapping[str | None, Checked]
    sampled: bool = False
    partial_source: str = ""


def _read(listings: Sequence[Checked], source_key: SourceKey | None, max_chunks: int) -> _Sample:
    """Read at most `max_chunks` chunks."""
    chunks: list[Chunk] = []
    listed: dict[str | None, Checked] = {}
    for listing in listings:
        rows = iter(listing.chunks)
        named = [(chunk, source_of(chunk, source_key)) for chunk in islice(rows, max_chunks - len(chunks))]
        new = [(chunk, name) for chunk, name in named if name not in listed]
        following = next(rows, None) if len(chunks) + len(named) >= max_chunks else None
        partial_source = ""
        if following is not None and new and (name := source_of(following, source_key)) == new[-1][1]:
            complete = [one for one in new if one[1] != name]
            if complete:
                new, partial_source = complete, name or ""
        chunks += [changed(chunk, rank=rank) for rank, (chunk, _) in enumerate(new, len(chunks))]
        listed.update((name, listing) for _, name in new)
        if following is not None:
            return _Sample(chunks, listed, sampled=True, partial_source=partial_source)
    return _Sample(chunks, listed)


class _Finding(NamedTuple):
    """What was found about the chunks of one source.

    Attributes:
        source: The name of the source; None for all chunks without one.
        order: Their order.
        listing: The chunks as they were listed.
        problem: Why the order is uncertain in retrieval; empty if it is not.
        cause: The cause of the problem.
        located: Whether the chunks were located in the text of the source.
        unread: Why the text of the source cannot be read; empty if it was read or not needed.
        duplicates: The indices of chunks that repeat an earlier one.
        remedy: A line of code that fixes the problem.
    """

    source: str | None
    order: SourceOrder
    listing: Listing
    problem: str = ""
    cause: str = ""
    located: bool = False
    unread: str = ""
    duplicates: Sequence[int] = ()
    remedy: str = ""


def _findings(sample: _Sample, options: ContextOptions, read_source: Callable[[str], str] | None) -> Iterator[_Finding]:
    """Yield the finding about each source; chunks without a source form one source."""
    placed = place(sample.chunks, options.source_key, options.position_key)
    about_sources = {chunk.source: doubt for doubt in doubts(placed, (), options) for chunk in doubt.chunks}
    unnamed: list[Chunk] = []
    for name, group in placed.groups.items():
        source = group[0].source
        if isinstance(name, int) or source is None:
            unnamed += group
            continue
        chunks = [changed(sample.chunks[chunk.rank], source=source) for chunk in group]
        found = _finding(chunks, sample.listings[source], options, read_source)
        doubt = about_sources.get(source)
        yield found if doubt is None or found.problem else found._replace(problem=doubt.what, cause=doubt.cause)
    if unnamed:
        listing = Listing(unnamed)
        doubt = about_sources.get(None)
        what = "the only chunk does not name its source" if doubt is None else doubt.what
        yield _Finding(None, order_of(listing)._replace(kind=PositionKind.NONE, field=""), listing, what, UNNAMED)


def _finding(
    chunks: Sequence[Chunk], listed: Checked, options: ContextOptions, read_source: Callable[[str], str] | None
) -> _Finding:
    """Decide the order of one source as retrieval does."""
    listing = Listing(chunks, listed.in_insertion_order, complete=True, store=listed.name)
    order = order_of(listing, options.position_key)
    found = _Finding(chunks[0].source, order, listing, duplicates=_duplicates(order))
    causes = order.doubts_among(range(len(chunks)))
    # A store can list the other chunks of a source only by a metadata key that contains its name.
    if not causes and not (listed.read_whole and field_of(chunks, options.source_key)):
        causes, linked = _doubts_of_part(order, listing, options)
        found = found._replace(problem=_IN_PARTS if causes and linked else "")
    if causes:
        found = found._replace(problem=found.problem or _main(causes), cause=_main(causes))
    if options.position_key is None and len(chunks) > 1 and (causes or stamped_by_store(chunks)):
        found = _located(found, read_source)
    return found


def _doubts_of_part(order: SourceOrder, listing: Listing, options: ContextOptions) -> tuple[list[str], bool]:
    """Return the doubts about some chunks of a source, as a search finds them, and whether any chunk has links."""
    by_place = sorted(zip(order.keys, order.chunks, strict=True), key=lambda one: one[0] or ())
    part = [chunk for _, chunk in by_place[::_EVERY]]
    found = order_of(Listing(part, listing.in_sequence, store=listing.store), options.position_key)
    return found.doubts_among(range(len(part))), any(chunk.previous_id or chunk.next_id for chunk in order.chunks)


def _located(found: _Finding, read_source: Callable[[str], str] | None) -> _Finding:
    """Locate the chunks of a source in its text."""
    if read_source is None:
        return found
    try:
        text = SourceText(read_source(found.source or ""))
    except Exception as error:  # noqa: BLE001 - the caller's function can raise anything
        return found._replace(unread=masked_error(error))
    absent = sum(not text.places(chunk.text) for chunk in found.listing.chunks)
    # If the text lacks chunks, it is another version, or the chunks are of several versions.
    listing = found.listing._replace(in_sequence=found.listing.in_sequence and not absent)
    order = order_of(listing, None, text)
    causes = order.doubts_among(range(len(listing.chunks)))
    located = any(span is not None for span in order.spans)
    found = found._replace(order=order, problem=_main(causes), cause=_main(causes), located=located)
    if causes and absent:
        what = f"the text of a source, which may be another version, lacks {counted(absent, 'chunk')}"
        found = found._replace(problem=what, cause=NOT_IN_TEXT)
    return found


def _main(causes: Sequence[str]) -> str:
    """Return the cause to fix first: nothing helps a source whose versions are mixed."""
    return ADDED_AGAIN if ADDED_AGAIN in causes else next(iter(causes), "")


def _duplicates(order: SourceOrder) -> list[int]:
    """Return the indices of chunks with the same text at the same place as an earlier one."""
    again = {index for index, one in copies_of(order.chunks).items() if not one.edited}
    if order.kind is not PositionKind.PAGE:
        first: dict[object, int] = {}
        for index, (chunk, key) in enumerate(zip(order.chunks, order.keys, strict=True)):
            # Images of a page have no text.
            if key is not None and chunk.text and first.setdefault((key, chunk.text), index) != index:
                again.add(index)
    return sorted(again)


def _with_remedy(found: _Finding, lines: Remedies) -> _Finding:
    return found._replace(remedy=lines.against(found.cause, found.order, found.listing)) if found.problem else found


def _report(found: _Finding) -> SourceCheck:
    order = found.order
    certainty = order.certainty
    return SourceCheck(
        source=found.source,
        chunks=len(order.chunks),
        kind=order.kind,
        field=order.field,
        # Retrieval may find a problem where all chunks together have none.
        certainty="unknown" if found.problem and certainty == "known" else certainty,
        missing=order.keys.count(None),
        duplicates=len(found.duplicates),
        problem=without_keys(found.problem),
        remedy=found.remedy,
        ids=tuple(chunk.id for chunk in order.chunks if chunk.id is not None),
    )


def _notes(findings: Sequence[_Finding], lines: Remedies) -> Iterator[Note]:
    """Yield findings that do not affect the order."""
    again = [found for found in findings if found.duplicates and found.cause != ADDED_AGAIN]
    if again:
        number = sum(len(found.duplicates) for found in again)
        were = "was" if number == 1 else "were"
        yield Note(
            f"{counted(number, 'chunk')} of {counted(len(again), 'source')} {were} added more than once, so a search "
            "returns duplicates",
            lines.deletion(again[0].source),
        )
    if sizes := [found for found in findings if _has_two_sizes(found.order)]:
        yield Note(
            f"the text of {counted(len(sizes), 'source')}, such as {describe(sizes[0].source)}, was added in chunks of "
            "different sizes, so a search returns parts of it repeatedly",
            lines.deletion(sizes[0].source),
        )
    if found_in_text := [found for found in findings if found.located and not found.problem]:
        yield Note(
            f"the order of {counted(len(found_in_text), 'source')} is known only from the text that was read",
            lines.writing("read_source=read_source"),
        )
    if unread := [found for found in findings if found.unread]:
        yield Note(
            f"the text of {counted(len(unread), 'source')} cannot be read, such as {describe(unread[0].source)}: "
            f"{clean(unread[0].unread)}"
        )


def _has_two_sizes(order: SourceOrder) -> bool:
    """Return whether several chunks of a source are inside others, as no splitter makes them in one call."""
    if any(chunk.parent_id or chunk.child_ids for chunk in order.chunks):
        return False
    spans = {(str(span.page), span.start, -span.end) for span in order.spans if span is not None}
    inside, page, last = 0, "", 0
    for on_page, _, end in sorted(spans):
        if on_page == page and -end <= last:
            inside += 1
        else:
            page, last = on_page, -end
    return inside >= max(_MIN_INSIDE, _INSIDE * len(spans))
