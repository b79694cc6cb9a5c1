"""Character offsets: reading them, and finding out whether they can be true (kinds 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

from oprag.chunk import NOWHERE, Chunk, Position, PositionKind, Span
from oprag.positions.links import chain_keys, linked_keys
from oprag.positions.sources import SOURCE_FIELDS, source_parts
from oprag.positions.stamp import NUMBERING_FIELD, PAGE_NUMBER_FIELDS, STAMP_FIELD, numberings
from oprag.positions.values import NUMBERED, Key, label_keys, natural_key, ordinal, whole

__all__ = [
    "Placement",
    "Position",
    "PositionKey",
    "PositionKind",
    "disagree",
    "find_positions",
    "is_exact",
    "page_of",
    "read_offsets",
    "shared",
    "stated_span",
]

# Start and end as splitters and stores name them. Metadata goes before the span that a framework keeps elsewhere, since
# a later correction (`locate_positions`) is written to metadata.
START_FIELDS = {
    "start_index": "end_index",
    "start_char_idx": "end_char_idx",
    "char_start": "char_end",
    "start_char": "end_char",
    "start_offset": "end_offset",
    "split_idx_start": "split_idx_end",
}
_ATTRIBUTE = "span"


def read_offsets(chunks: Sequence[Chunk], fields: set[str]) -> tuple[str, list[Span | None]]:
    """The offsets of each chunk, as its metadata or its framework states them.

    Args:
        chunks: The chunks of one source.
        fields: The metadata keys that occur in them.

    Returns:
        The names of what was read, empty when there is nothing; and a span for each chunk, None where it states none.
        Only a span of the framework states its page itself.
    """
    names = [] if fields.isdisjoint(START_FIELDS) else [name for name in START_FIELDS if name in fields]
    if not names and all(chunk.span is None for chunk in chunks):
        return "", [None] * len(chunks)
    spans: list[Span | None] = []
    read: dict[str, None] = {}
    for chunk in chunks:
        name, span = _read(chunk, names)
        spans.append(span)
        if span is not None:
            read[name] = None
    return ", ".join(read), spans


def stated_span(chunk: Chunk) -> Span | None:
    """The offsets of one chunk, as its metadata or its framework states them."""
    return _read(chunk, [name for name in START_FIELDS if name in chunk.metadata])[1]


def _read(chunk: Chunk, names: Sequence[str]) -> tuple[str, Span | None]:
    metadata = chunk.metadata
    for name in names:
        start = whole(metadata.get(name))
        if start is not None:
            end = whole(metadata.get(START_FIELDS[name]))
            return name, Span(start, end if end is not None and end >= start else start + len(chunk.text))
    if chunk.span is not None:
        start, end = whole(chunk.span[0]), whole(chunk.span[1])
        if start is not None:
            end = end if end is not None and end >= start else start + len(chunk.text)
            return _ATTRIBUTE, Span(start, end, chunk.span.page)
    return "", None


def is_exact(chunk: Chunk, span: Span) -> bool:
    """Whether the chunk's text can be the characters of the span, one by one."""
    return span.end - span.start == len(chunk.text)


def disagree(chunks: Sequence[Chunk], claims: Sequence[tuple[Any, int, int] | None]) -> bool:
    """Whether two chunks claim the same characters of the source with text that differs.

    Offsets that restart in every section or on every page are caught by this: sooner or later two chunks claim the same
    place.

    Args:
        chunks: The chunks of one source.
        claims: Page, start and end of each chunk; None for a chunk that claims nothing.
    """
    if len(chunks) < 2:
        return False
    texts: dict[tuple[Any, int, int], str] = {}
    exact: dict[Any, list[tuple[int, int, str]]] = {}
    for chunk, claim in zip(chunks, claims, strict=True):
        if claim is None:
            continue
        known = texts.setdefault(claim, chunk.text)
        if known != chunk.text:
            return True
        page, start, end = claim
        if known is chunk.text and end - start == len(known):
            exact.setdefault(page, []).append((start, end, known))
    return any(_overlap_differs(sorted(claimed)) for claimed in exact.values())


def _overlap_differs(claimed: list[tuple[int, int, str]]) -> bool:
    """Whether texts that overlap differ there; sorted by start, so each need be held only against the farthest end."""
    far_start, far_end, far_text = claimed[0]
    for start, end, text in claimed[1:]:
        if start < far_end:
            shared = min(end, far_end) - start
            offset = start - far_start
            if far_text[offset : offset + shared] != text[:shared]:
                return True
        if end > far_end:
            far_start, far_end, far_text = start, end, text
    return False


PositionKey = str | tuple[str, ...] | Callable[[Chunk], Any]


STAMPED_FIELDS = ("chunk_index", "chunk_idx", "chunk_number", "chunk_order", "split_id")
LABEL_FIELD = "page_label"
PAGE_FIELDS = (*PAGE_NUMBER_FIELDS, LABEL_FIELD)
SECONDS_FIELD = "start_seconds"
_SPAN_PAGE = "span.page"
FRAME_FIELDS = (_SPAN_PAGE, *PAGE_FIELDS, "source", SECONDS_FIELD)
"""What offsets may count from; `source` where it contains a page."""
NUMBER_FIELDS = ("row", "seq_num", "sequence_number", "sequence", "order", "index", "slide", "line")
READ_FIELDS = frozenset({*SOURCE_FIELDS, *STAMPED_FIELDS, *PAGE_FIELDS, *START_FIELDS, SECONDS_FIELD, *NUMBER_FIELDS})
"""The metadata keys that sources and positions are read from."""


class Placement(NamedTuple):
    """What was found out about the chunks of one source, in their sequence.

    Attributes:
        positions: One a chunk.
        spans: One a chunk, None where offsets are missing or contradict each other.
    """

    positions: list[Position]
    spans: list[Span | None]


class _Reading(NamedTuple):
    kind: PositionKind
    field: str
    keys: Sequence[Key | None]


def find_positions(chunks: Sequence[Chunk], position_key: PositionKey | None = None) -> Placement:
    """Read the positions and spans of the chunks of one source.

    Args:
        chunks: Every retrieved chunk of one source, best first.
        position_key: A metadata key, several that make one key together, or a function of the chunk. It replaces the
            ladder: a chunk without a value that counts has no position.

    Returns:
        A position and a span for each chunk.
    """
    fields: set[str] = set().union(*[chunk.metadata for chunk in chunks])
    frames, pages = _frames(chunks, fields, _pages(chunks, fields))
    if position_key is not None:
        taken: _Reading | None = _Reading(
            PositionKind.KEY, _name(position_key), [_given(c, position_key) for c in chunks]
        )
    else:
        taken = _highest(_readings(chunks, fields, pages, frames), len(chunks))
    spans = _spans(chunks, frames)
    if taken is None:
        return Placement([NOWHERE] * len(chunks), spans)
    kind, field, keys = taken
    return Placement([NOWHERE if key is None else Position(key, kind, field) for key in keys], spans)


class _Frame(NamedTuple):
    """Offsets, the page that they may count from, and what each chunk claims by both."""

    page_field: str
    offset_field: str
    offsets: list[Span | None]
    claims: Sequence[tuple[Key, int, int] | None]


def _frames(
    chunks: Sequence[Chunk], fields: set[str], pages: dict[str, list[Key | None]]
) -> tuple[list[_Frame], dict[str, list[Key | None]]]:
    """The ways to read the offsets that do not contradict themselves, and the pages that can be believed.

    Offsets count from each kind of page, or from the start of the source. The first way that covers every chunk is the
    last one: what comes after it is never taken. Where page labels and offsets contradict each other, the labels
    restart, as those of merged files do, and mean nothing without the offsets either. Page numbers usually count
    through the file, so there the offsets are at fault: they restart in every section of a page.
    """
    offset_field, spans = read_offsets(chunks, fields)
    frames: list[_Frame] = []
    if not offset_field:
        return frames, pages
    believed = dict(pages)
    # Offsets that state their page count from it.
    no_page: list[Key | None] = [None if span is not None and span.page is not None else () for span in spans]
    for page_field, keys in [*pages.items(), ("", no_page)]:
        claims = [
            None if page is None or span is None else (page, span.start, span.end)
            for page, span in zip(keys, spans, strict=True)
        ]
        if disagree(chunks, claims):
            if page_field == LABEL_FIELD:
                del believed[page_field]
            continue
        frames.append(_Frame(page_field, offset_field, spans, claims))
        if None not in claims:
            break
    return frames, believed


def _spans(chunks: Sequence[Chunk], frames: Sequence[_Frame]) -> list[Span | None]:
    """The offsets with the page that they count from: of the first frame that holds most of them."""
    if not frames:
        return [None] * len(chunks)
    best = (
        frames[0]
        if len(frames) == 1
        else max(frames, key=lambda frame: sum(claim is not None for claim in frame.claims))
    )
    if not best.page_field:
        return best.offsets
    return [
        None if claim is None else Span(claim[1], claim[2], _page(claim[0], best.page_field, chunk))
        for chunk, claim in zip(chunks, best.claims, strict=True)
    ]


def _page(key: Key, field: str, chunk: Chunk) -> str | int:
    """The page as it is shown: what a chunk of a transcript begins with is a time."""
    if field == SECONDS_FIELD:
        return f"{key[1]} s"
    if key[0] == NUMBERED and isinstance(key[1], int):
        return key[1]
    return str(chunk.span.page if field == _SPAN_PAGE and chunk.span else chunk.metadata[field]).strip()


def page_of(chunk: Chunk) -> str | int | None:
    """The page that a placed chunk begins on, by its printed label where there is one; None where nothing names one.

    PDF loaders of LangChain count `page` from 0, so it is not the number that a reader looks for.
    """
    if (label := _named_page(chunk, LABEL_FIELD)) is not None:
        return label
    if chunk.span is not None and chunk.span.page is not None:
        return chunk.span.page
    found = (_named_page(chunk, field) for field in PAGE_FIELDS)
    return next((page for page in found if page is not None), source_parts(chunk.metadata).page)


def _named_page(chunk: Chunk, field: str) -> str | int | None:
    (key,) = label_keys([chunk.metadata.get(field)], any_label=field == LABEL_FIELD)
    return None if key is None else _page(key, field, chunk)


def _highest(readings: Iterator[_Reading], count: int) -> _Reading | None:
    """The first reading that covers every chunk, else the first of those that cover most."""
    best, most = None, 0
    for reading in readings:
        covered = count - reading.keys.count(None)
        if covered > most:
            best, most = reading, covered
        if covered == count:
            break
    return best


def _readings(
    chunks: Sequence[Chunk], fields: set[str], pages: dict[str, list[Key | None]], frames: Sequence[_Frame]
) -> Iterator[_Reading]:
    """Every kind that says something about these chunks and does not contradict itself, best first."""
    for field in STAMPED_FIELDS:
        if field in fields:
            keys = _ordinals(chunks, field)
            calls = numberings(chunks) if field == STAMP_FIELD and NUMBERING_FIELD in fields else {None}
            # Where the pages of several files have one source, they restart, and stamps of one call do not.
            against = pages if None in calls else {}
            if len(calls) <= 1 and not shared(chunks, keys) and not _against_pages(keys, against):
                yield _Reading(PositionKind.STAMPED, field, linked_keys(chunks, keys))
    for page_field, offset_field, _, claims in frames:
        if page_field:
            yield _Reading(PositionKind.PAGE_OFFSET, f"{page_field}, {offset_field}", linked_keys(chunks, claims))
        else:
            keys = [claim and claim[1:] for claim in claims]
            yield _Reading(PositionKind.OFFSET, offset_field, linked_keys(chunks, keys))
    if any(chunk.previous_id or chunk.next_id for chunk in chunks):
        yield _Reading(PositionKind.LINKS, "previous, next", chain_keys(chunks))
    for field, page_keys in pages.items():
        yield _Reading(PositionKind.PAGE, field, page_keys)
    for field in NUMBER_FIELDS:
        if field in fields:
            yield _Reading(PositionKind.PAGE, field, _ordinals(chunks, field))


def _ordinals(chunks: Sequence[Chunk], field: str) -> list[Key | None]:
    numbers = [ordinal(chunk.metadata.get(field)) for chunk in chunks]
    return [None if number is None else (number,) for number in numbers]


def shared(chunks: Sequence[Chunk], keys: Sequence[Key | None]) -> bool:
    """Whether two chunks of different text have the same key."""
    if len(chunks) < 2:
        return False
    texts: dict[Key, str] = {}
    return any(
        key is not None and texts.setdefault(key, chunk.text) != chunk.text
        for chunk, key in zip(chunks, keys, strict=True)
    )


def _against_pages(keys: Sequence[Key | None], pages: dict[str, list[Key | None]]) -> bool:
    """Whether the numbers run against the page numbers, where these cover the source.

    This happens when a file is stamped page by page: its numbers then begin anew on each page.
    """
    covering = next((page_keys for page_keys in pages.values() if None not in page_keys), [])
    if None in keys or any(page[0] != NUMBERED for page in covering):  # type: ignore[index]
        return False
    in_order = sorted(zip(keys, covering, strict=True)) if covering else []
    return any(after < before for (_, before), (_, after) in pairwise(in_order))  # type: ignore[operator]


def _pages(chunks: Sequence[Chunk], fields: set[str]) -> dict[str, list[Key | None]]:
    """Everything that offsets may count from, in the sequence in which it is tried."""
    pages = {
        field: label_keys([chunk.metadata.get(field) for chunk in chunks], any_label=field == LABEL_FIELD)
        for field in PAGE_FIELDS
        if field in fields
    }
    # The page of a span is the one that its offsets count from, whatever the metadata say.
    if any(chunk.span is not None and chunk.span.page is not None for chunk in chunks):
        stated = [None if chunk.span is None else chunk.span.page for chunk in chunks]
        pages = {_SPAN_PAGE: label_keys(stated, any_label=True), **pages}
    if SECONDS_FIELD in fields or any(_varies(chunks, key) for key in ("source", "url") if key in fields):
        parts = [source_parts(chunk.metadata) for chunk in chunks]
        seconds = [chunk.metadata.get(SECONDS_FIELD, part.seconds) for chunk, part in zip(chunks, parts, strict=True)]
        for field, values in (("source", [part.page for part in parts]), (SECONDS_FIELD, seconds)):
            if values.count(None) < len(values):
                pages[field] = label_keys(values, any_label=False)
    return pages


def _varies(chunks: Sequence[Chunk], key: str) -> bool:
    """Whether the chunks of one source have more than one name for it, so that these hold pages or times as well."""
    names = [chunk.metadata.get(key) for chunk in chunks]
    return set(map(type, names)) != {str} or len(set(names)) > 1


def _name(position_key: PositionKey) -> str:
    if isinstance(position_key, str):
        return position_key
    if isinstance(position_key, tuple):
        return ", ".join(position_key)
    return getattr(position_key, "__name__", type(position_key).__name__)


def _given(chunk: Chunk, position_key: PositionKey) -> Key | None:
    if isinstance(position_key, str):
        return _key(chunk.metadata.get(position_key))
    if isinstance(position_key, tuple):
        return _key(tuple(chunk.metadata.get(name) for name in position_key))
    return _key(position_key(chunk))


def _key(value: Any) -> Key | None:
    """A caller's value, or several of them, as a key; there is none where one of them does not count."""
    parts = [_part(part) for part in (value if isinstance(value, tuple | list) else [value])]
    return None if not parts or None in parts else tuple(parts)


def _part(value: Any) -> Key | None:
    """A number, text or date as a key; these can stand beside each other."""
    number = ordinal(value)
    if number is not None:
        return (0, number)
    if isinstance(value, date):
        return (1, *natural_key(value.isoformat()))
    # A negative number in a string is the same "not found" as a negative number.
    if isinstance(value, str) and value.strip() and not value.strip().startswith("-"):
        return (1, *natural_key(value.strip()))
    return None
