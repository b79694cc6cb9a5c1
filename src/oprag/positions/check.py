"""Checks how the order of each source in a store or list is known, by the same rules as retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from oprag._internal.masking import clean, describe, masked_error, without_keys
from oprag.chunk import Chunk, PositionKind, changed, counted
from oprag.errors import OptionError
from oprag.options import ContextOptions, SourceKey, check_count
from oprag.positions.check_report import Note, PositionCheck, SourceCheck
from oprag.positions.copies import copies_of
from oprag.positions.readings import stamped_by_store
from oprag.positions.retrieved import UNNAMED, about_sources, place
from oprag.positions.source_names import field_of, source_of, warn_about_key
from oprag.positions.source_order import ADDED_AGAIN, Listing, SourceOrder, order_of
from oprag.positions.source_text import SourceText
from oprag.positions.suggestions import NOT_IN_TEXT, Suggestions

__all__ = ["Checked", "check_listings", "given_chunks", "order_by_text"]

_ALL = 1_000_000_000  # more chunks than any store contains
# Simulates retrieval of a subset: links can bridge one missing chunk, but not two.
_EVERY = 3
_IN_PARTS = "the order of a source can be told from all of its chunks, but not from the few that a search returns"
# Minimum number and share of chunks inside others of a source that was split with two chunk sizes.
_MIN_INSIDE = 3
_INSIDE = 0.05


class Checked(NamedTuple):
    """The chunks of a store, or those that the caller passed."""

    name: str
    chunks: Iterable[Chunk]
    in_insertion_order: bool = False
    read_whole: bool = True  # whether retrieval decides an order from all chunks of the source


def given_chunks(given: Any, name: str, chunks_of: Callable[[Any], Iterable[Chunk]]) -> Checked:
    """Return the documents or nodes that the caller passed; refuse a store or retriever that cannot be listed."""
    # Pydantic models are iterable: they yield their fields.
    is_model = hasattr(type(given), "model_fields")
    if isinstance(given, str | Mapping) or is_model or not isinstance(given, Iterable):
        raise OptionError(
            f"the chunks of {type(given).__name__} cannot be listed; pass the {name} that were added: "
            f"check_positions({name})",
            given,
        )
    return Checked(name, chunks_of(given), read_whole=False)


def check_listings(
    listings: Sequence[Checked],
    options: ContextOptions,
    suggestions: Suggestions,
    *,
    max_chunks: int,
    read_source: Callable[[str], str] | None = None,
) -> PositionCheck:
    """Check the order of the chunks in listings; a source in several listings is taken from the first."""
    check_count("max_chunks", max_chunks, optional=False)
    sample = _read(listings, options.source_key, max_chunks)
    warn_about_key("source_key", options.source_key, sample.chunks)
    warn_about_key("position_key", options.position_key, sample.chunks)
    key = options.source_key
    given = f", source_key={'source_key' if callable(key) else repr(key)}" if key is not None else ""
    suggestions = replace(suggestions, options=f"{given}, max_chunks={_ALL}" if sample.sampled else given)
    checks, unread, sizes = [], dict[str | None, str](), list[str | None]()
    for found in _findings(sample, options, read_source):
        checks.append(_report(found, suggestions))
        if checks[-1].source is not None and _has_two_sizes(found.order):
            sizes.append(checks[-1].source)
        if found.unread:
            unread[found.listing.chunks[0].source] = found.unread
    return PositionCheck(
        searched=" and ".join(dict.fromkeys(listing.name for listing in listings)),
        sources=tuple(sorted(checks, key=lambda one: (not one.problem, one.certainty == "known", -one.chunks))),
        chunks=len(sample.chunks),
        sampled=sample.sampled,
        notes=tuple(_notes(checks, sizes, unread, suggestions)),
    )


class _Sample(NamedTuple):
    """The chunks that were read, with their indexes as ranks, and the listing that those of each source come from."""

    chunks: list[Chunk]
    listings: Mapping[str | None, Checked]
    sampled: bool


def _read(listings: Sequence[Checked], source_key: SourceKey | None, max_chunks: int) -> _Sample:
    """Read at most `max_chunks` chunks, and drop the source that the sample ends in the middle of."""
    every = ((listing, chunk, source_of(chunk, source_key)) for listing in listings for chunk in listing.chunks)
    rows = list(islice(every, max_chunks + 1))
    listed: dict[str | None, Checked] = {}
    for listing, _, name in rows:
        listed.setdefault(name, listing)
    read = [(chunk, name) for listing, chunk, name in rows[:max_chunks] if listed[name] is listing]
    if len(rows) > max_chunks and rows[-2][2] == rows[-1][2]:
        *_, last = rows[-1]
        read = [one for one in read if one[1] != last] or read
    chunks = [changed(chunk, rank=rank) for rank, (chunk, _) in enumerate(read)]
    return _Sample(chunks, listed, len(rows) > max_chunks)


class _Finding(NamedTuple):
    """The order of one source, why it is uncertain in retrieval, and why the text of the source cannot be read."""

    order: SourceOrder
    listing: Listing
    problem: str = ""
    cause: str = ""
    unread: str = ""


def _findings(sample: _Sample, options: ContextOptions, read_source: Callable[[str], str] | None) -> Iterator[_Finding]:
    """Yield the finding about each source; chunks without a source form one source."""
    placed = place(sample.chunks, options.source_key, options.position_key)
    doubts = {chunk.source: doubt for doubt in about_sources(placed, options) for chunk in doubt.chunks}
    unnamed: list[Chunk] = []
    for name, group in placed.groups.items():
        if isinstance(name, int):
            unnamed += group
            continue
        chunks = [changed(sample.chunks[chunk.rank], source=name) for chunk in group]
        found = _finding(chunks, sample.listings[name], options, read_source)
        if name in doubts and not found.problem:
            found = found._replace(problem=doubts[name].what, cause=doubts[name].cause)
        yield found
    if unnamed:
        what = doubts[None].what if None in doubts else "the only chunk does not name its source"
        order = order_of(Listing(unnamed))._replace(kind=PositionKind.NONE, field="")
        yield _Finding(order, Listing(unnamed), what, UNNAMED)


def _finding(
    chunks: Sequence[Chunk], listed: Checked, options: ContextOptions, read_source: Callable[[str], str] | None
) -> _Finding:
    """Decide the order of one source as retrieval does."""
    listing = Listing(chunks, listed.in_insertion_order, complete=True, store=listed.name)
    order = order_of(listing, options.position_key)
    cause = problem = _main(order)
    # A store can list the other chunks of a source only by a metadata key that contains its name.
    if not cause and not (listed.read_whole and field_of(chunks, options.source_key)):
        by_place = sorted(zip(order.keys, order.chunks, strict=True), key=lambda one: one[0] or ())
        part = listing._replace(chunks=[chunk for _, chunk in by_place[::_EVERY]], complete=False)
        cause = _main(order_of(part, options.position_key))
        problem = _IN_PARTS if cause else ""
    found = _Finding(order, listing, problem, cause)
    if read_source is None or options.position_key is not None or len(chunks) == 1:
        return found
    if not cause and not stamped_by_store(chunks):
        return found
    order, lacking, unread = order_by_text(listing, read_source)
    if unread:
        return found._replace(unread=unread)
    cause = problem = _main(order)
    if cause and lacking:
        cause = NOT_IN_TEXT
        problem = f"the text of a source, which may be another version, lacks {counted(lacking, 'chunk')}"
    return found._replace(order=order, problem=problem, cause=cause)


def order_by_text(
    listing: Listing, read_source: Callable[[str], str] | None, *, trusted: bool = False
) -> tuple[SourceOrder, int, str]:
    """Return the order of a source by its text, the number of chunks that it lacks, and why it cannot be read."""
    if read_source is None:
        return order_of(listing), 0, ""
    try:
        text = SourceText(read_source(listing.chunks[0].source or ""))
    except Exception as error:  # noqa: BLE001 - the caller's function can raise anything
        return order_of(listing), 0, masked_error(error)
    lacking = sum(not text.places(chunk.text) for chunk in listing.chunks)
    if lacking and not trusted:
        # The text is another version, or the chunks are of several versions, of which some were added later.
        listing = listing._replace(in_sequence=False)
    return order_of(listing, None, text), lacking, ""


def _main(order: SourceOrder) -> str:
    """Return the cause of doubt to fix first: nothing helps a source whose versions are mixed."""
    causes = order.doubts_among()
    return ADDED_AGAIN if ADDED_AGAIN in causes else next(iter(causes), "")


def _duplicates(order: SourceOrder) -> int:
    """Return the number of chunks with the same text at the same place as an earlier one."""
    again = {index for index, one in copies_of(order.chunks).items() if not one.edited}
    if order.kind is not PositionKind.PAGE:
        first: dict[object, int] = {}
        for index, (chunk, key) in enumerate(zip(order.chunks, order.keys, strict=True)):
            # Images of a page have no text.
            if key is not None and chunk.text and first.setdefault((key, chunk.text), index) != index:
                again.add(index)
    return len(again)


def _report(found: _Finding, suggestions: Suggestions) -> SourceCheck:
    order, source, certainty = found.order, found.listing.chunks[0].source, found.order.certainty
    return SourceCheck(
        source=source,
        chunks=len(order.chunks),
        kind=order.kind,
        field=order.field,
        # Retrieval may find a problem where all chunks together have none, and does not sort what names no source.
        certainty="unknown" if found.problem and (certainty == "known" or source is None) else certainty,
        missing=order.keys.count(None),
        duplicates=0 if source is None else _duplicates(order),
        problem=without_keys(found.problem),
        suggestion=suggestions.against(found.cause, order, found.listing) if found.problem else "",
        ids=tuple(chunk.id for chunk in order.chunks if chunk.id is not None),
    )


def _notes(
    checks: Sequence[SourceCheck],
    sizes: Sequence[str | None],
    unread: Mapping[str | None, str],
    suggestions: Suggestions,
) -> Iterator[Note]:
    """Yield findings that do not affect the order."""
    again = [one for one in checks if one.duplicates and one.problem != ADDED_AGAIN]
    if again:
        number = sum(one.duplicates for one in again)
        were = "was" if number == 1 else "were"
        yield Note(
            f"{counted(number, 'chunk')} of {counted(len(again), 'source')} {were} added more than once, so a search "
            "returns duplicates",
            suggestions.deletion(again[0].source),
        )
    if sizes:
        yield Note(
            f"the text of {counted(len(sizes), 'source')}, such as {describe(sizes[0])}, was added in chunks of "
            "different sizes, so a search returns parts of it repeatedly",
            suggestions.deletion(sizes[0]),
        )
    for source, why in islice(unread.items(), 1):
        yield Note(
            f"the text of {counted(len(unread), 'source')} cannot be read, such as {describe(source)}: {clean(why)}"
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
