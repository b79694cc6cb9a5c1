"""Readings: the ways to read a key for each chunk of a source from its metadata, offsets and links.

Which reading tells the order is decided in `oprag.positions.source_order`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import compress, pairwise
from typing import Any, NamedTuple

from oprag.chunk import Chunk, Key, PositionKind, Span, changed
from oprag.options import PositionKey
from oprag.positions.fields import (
    LABEL_FIELD,
    NUMBER_FIELDS,
    NUMBERING_FIELD,
    PAGE_FIELDS,
    PAGE_NUMBER_FIELDS,
    ROOTS,
    SECONDS_FIELD,
    STAMP_FIELD,
    STAMPED_FIELDS,
    START_FIELDS,
    WITHIN_PAGE_FIELDS,
    heading_levels,
    is_by_store,
    name_headings,
    with_usual_fields,
)
from oprag.positions.source_names import source_parts
from oprag.positions.values import NUMBERED, TOO_LARGE, label_keys, natural_key, ordinal, whole

__all__ = [
    "FRAME_FIELDS",
    "LINKED",
    "LOCATED",
    "TIES_BY_STORE",
    "Facts",
    "Reading",
    "best_reading",
    "by_position_key",
    "facts_of",
    "ignores_offsets",
    "is_exact",
    "kind_text",
    "located_reading",
    "numberings",
    "page_of",
    "page_readings",
    "readings_within_pages",
    "runs_against",
    "shared",
    "stamped_by_store",
    "stated_span",
]


_ATTRIBUTE = "span"
# A value of `position_key` that is the number of a section, and no decimal number; then all of its strings are.
_SECTION = r"[0-9]{1,9}(\.[0-9]{1,9}){2,20}|[0-9]{1,9}\.[0-9]{0,8}[1-9]0+"
_AWARE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,15}(Z|[+-][0-9:]{2,9})"
_SPAN_PAGE = "span.page"
_LABELS = (_SPAN_PAGE, LABEL_FIELD)  # other fields contain only numbers and roman numerals
_SHOWN_PAGES = (LABEL_FIELD, _SPAN_PAGE, *PAGE_NUMBER_FIELDS)
LOCATED = "text of the source"
"""The field of positions that were found by locating chunks in the text of their source."""
LINKED = "previous, next"
"""The fields of positions that links tell."""
TIES_BY_STORE = ", store"
"""Appended to the field if the chunks of a page are in insertion order."""
_KIND_NAMES = {
    PositionKind.KEY: "position_key",
    PositionKind.STAMPED: "stamped",
    PositionKind.PAGE_OFFSET: "page and offset",
    PositionKind.OFFSET: "offset",
    PositionKind.LINKS: "links",
    PositionKind.PAGE: "page or number",
    PositionKind.STORE: "insertion order",
    PositionKind.NONE: "none",
}
FRAME_FIELDS = (_SPAN_PAGE, *PAGE_FIELDS, "source", SECONDS_FIELD)
"""Fields that offsets may be relative to; `source` if it contains a page."""

_Keys = Sequence[Key | None]


class Reading(NamedTuple):
    """One way to read positions: a key for each chunk, None for a chunk without one."""

    kind: PositionKind
    field: str
    keys: _Keys


class _Frame(NamedTuple):
    """The (page, start, end) of each chunk, from offsets relative to a page field; it is empty for the source."""

    page_field: str
    claims: Sequence[tuple[Key, int, int] | None]


class Facts(NamedTuple):
    """What the chunks of one source state about their places."""

    chunks: Sequence[Chunk]  # with the usual fields for what other tools write elsewhere
    fields: set[str]
    pages: dict[str, list[Key | None]]  # the keys of each page field that can be trusted
    offset_field: str  # empty if no chunk states an offset
    frames: Sequence[_Frame]  # the readings of the offsets that do not contradict themselves
    spans: Sequence[Span | None]  # the offsets and their page; None where they are missing or contradictory
    linked: bool
    located: Sequence[Span | None] = ()  # the places in the text of the source, which are then the spans


def facts_of(chunks: Sequence[Chunk], located: Sequence[Span | None] = ()) -> Facts:
    """Collect what the chunks of one source state about their places."""
    fields: set[str] = set().union(*(chunk.metadata for chunk in chunks))
    # Checked once for all: metadata of other tools are rare, and this is part of every question.
    if not fields.isdisjoint(ROOTS):
        chunks = [changed(chunk, metadata=with_usual_fields(chunk.metadata)) for chunk in chunks]
        fields = fields.union(*(chunk.metadata for chunk in chunks))
    with_spans = any(chunk.span is not None for chunk in chunks)
    linked = any(chunk.previous_id or chunk.next_id or chunk.parent_id or chunk.child_ids for chunk in chunks)
    pages = _pages(chunks, fields, with_spans=with_spans)
    offset_field, frames = "", list[_Frame]()
    spans: Sequence[Span | None] = [None] * len(chunks)
    if with_spans or not fields.isdisjoint(START_FIELDS):
        names = [*(name for name in START_FIELDS if name in fields), _ATTRIBUTE]
        stated = [_stated(chunk, names) for chunk in chunks]
        offset_field = ", ".join(dict.fromkeys(one[0] for one in stated if one is not None))
        offsets = [one and one[1] for one in stated]
        frames, pages = _frames(chunks, offset_field, offsets, pages)
        spans = _spans(chunks, offsets, frames) if frames else spans
    return Facts(chunks, fields, pages, offset_field, frames, located or spans, linked, located)


def best_reading(facts: Facts) -> Reading | None:
    """Return the first reading that covers every chunk, else the first of those that cover most chunks."""
    best, most, count = None, 0, len(facts.chunks)
    for reading in _readings(facts):
        covered = count - reading.keys.count(None)
        if covered > most:
            best, most = reading, covered
        if most == count:
            break
    return best


def _readings(facts: Facts) -> Iterator[Reading]:
    """Yield every reading of the metadata that does not contradict itself, best kind first."""
    by_text = located_reading(facts)
    stamps = _stamps(facts)
    if by_text is not None and stamped_by_store(facts.chunks):
        yield by_text
        stamps = (one for one in stamps if one.field != STAMP_FIELD or not runs_against(one.keys, by_text.keys))
    yield from stamps
    if by_text is not None:
        yield by_text
    for page_field, claims in facts.frames:
        if page_field:
            yield Reading(PositionKind.PAGE_OFFSET, f"{page_field}, {facts.offset_field}", claims)
        else:
            yield Reading(PositionKind.OFFSET, facts.offset_field, [claim and claim[1:] for claim in claims])
    if facts.linked and any(chunk.previous_id or chunk.next_id for chunk in facts.chunks):
        yield Reading(PositionKind.LINKS, LINKED, _chain_keys(facts.chunks))
    yield from page_readings(facts)
    for field in NUMBER_FIELDS:
        if field in facts.fields:
            yield Reading(PositionKind.PAGE, field, _ordinals(facts.chunks, field))


def page_readings(facts: Facts) -> Iterator[Reading]:
    """Yield the readings of the pages that can be trusted."""
    yield from (Reading(PositionKind.PAGE, field, keys) for field, keys in facts.pages.items())


def _stamps(facts: Facts) -> Iterator[Reading]:
    """Yield the readings of numbers that were stamped at ingestion, if no two chunks of different text share one."""
    chunks = facts.chunks
    pages: _Keys = next((keys for keys in facts.pages.values() if None not in keys), [])
    if any(key is not None and key[0] != NUMBERED for key in pages):
        # The order of labels is a guess.
        pages = []
    for field in STAMPED_FIELDS:
        if field in facts.fields:
            keys = _ordinals(chunks, field)
            calls = numberings(chunks) if field == STAMP_FIELD and NUMBERING_FIELD in facts.fields else {None}
            # A file that was stamped page by page has numbers that restart on each page. A numbering proves that one
            # call stamped all chunks: pages that restart are then those of several files.
            restarts = pages and None in calls and None not in keys and runs_against(keys, pages)
            if len(calls) <= 1 and not shared(chunks, keys) and not restarts:
                yield Reading(PositionKind.STAMPED, field, keys)


def located_reading(facts: Facts) -> Reading | None:
    """Return the reading of the places at which chunks were found in the text of their source; None if none was."""
    if not any(facts.located):
        return None
    return Reading(PositionKind.OFFSET, LOCATED, [span and span[:2] for span in facts.located])


def readings_within_pages(facts: Facts, pages: _Keys, page_field: str) -> Iterator[tuple[str, _Keys]]:
    """Yield the fields that order the chunks of each page, with their keys, which may begin again on each page."""
    for field in WITHIN_PAGE_FIELDS:
        if field in facts.fields:
            keys = _ordinals(facts.chunks, field)
            both = [page and key and (page, key) for page, key in zip(pages, keys, strict=True)]
            if any(both) and not shared(facts.chunks, both):
                yield field, keys
    # Some chunks lack an offset, or it would have been read as page and offset.
    for field, claims in facts.frames:
        if field == page_field:
            yield facts.offset_field, [claim and claim[1:] for claim in claims]
    if facts.linked:
        links = _chain_keys(facts.chunks)
        runs: dict[Key | None, set[int | None]] = {}
        for page, link in zip(pages, links, strict=True):
            runs.setdefault(page, set()).add(link and link[0])
        yield LINKED, [link if len(runs[page]) == 1 else None for page, link in zip(pages, links, strict=True)]


def _ordinals(chunks: Sequence[Chunk], field: str) -> list[Key | None]:
    keys: list[Key | None] = []
    for chunk in chunks:
        number = chunk.metadata.get(field)
        # Inlined for plain integers: calling `ordinal` for each chunk would take most of the time.
        if type(number) is not int or not 0 <= number < TOO_LARGE:
            number = ordinal(number)
        keys.append(None if number is None else (number,))
    return keys


def stamped_by_store(chunks: Sequence[Chunk]) -> bool:
    """Return whether any of these chunks has a number that was stamped from a store's insertion order."""
    return any(NUMBERING_FIELD in chunk.metadata and is_by_store(chunk.metadata) for chunk in chunks)


def numberings(chunks: Sequence[Chunk]) -> set[str | None]:
    """Return the numberings that the stamps come from: each call begins at 0, so numbers of two do not compare."""
    names = [name if isinstance(name := chunk.metadata.get(NUMBERING_FIELD), str) else None for chunk in chunks]
    if len(set(names)) > 1:
        stamped = [ordinal(chunk.metadata.get(STAMP_FIELD)) is not None for chunk in chunks]
        names = list(compress(names, stamped))
    return set(names)


def shared(chunks: Sequence[Chunk], keys: _Keys) -> bool:
    """Return whether two chunks with different texts have the same key."""
    texts: dict[Key, str] = {}
    return len(chunks) > 1 and any(
        key is not None and texts.setdefault(key, chunk.text) != chunk.text
        for chunk, key in zip(chunks, keys, strict=True)
    )


def runs_against(keys: _Keys, others: _Keys) -> bool:
    """Return whether the order of these keys contradicts that of other keys of the same chunks."""
    both = sorted((key, other) for key, other in zip(keys, others, strict=True) if key and other is not None)
    return any(after < before for (_, before), (_, after) in pairwise(both))


def _chain_keys(chunks: Sequence[Chunk]) -> list[tuple[int, int] | None]:
    """Return a key (run, index in it) for each chunk that links connect, also through one that was not retrieved.

    The order of runs is unknown, so the run of the best-ranked chunk is first. Links that branch, contradict each other
    or form a cycle give no keys, and neither does an id that two different texts share.
    """
    texts: dict[str | None, str] = {}
    following: dict[str, str] = {}
    preceding: dict[str, str] = {}
    broken: set[str | None] = set()
    for chunk in chunks:
        if texts.setdefault(chunk.id, chunk.text) != chunk.text:
            broken.add(chunk.id)
        for before, after in ((chunk.previous_id, chunk.id), (chunk.id, chunk.next_id)):
            if before is None or after is None:
                continue
            if following.setdefault(before, after) != after or preceding.setdefault(after, before) != before:
                broken.update((before, after))
    # None of the chunks of a cycle is the first of a run.
    begun = (_run_from(first, following) for first in following.keys() - preceding.keys())
    runs: dict[str | None, dict[str, None]] = {one: run for run in begun for one in run}
    places: dict[str | None, tuple[int, int]] = {}
    number = 0
    for name in texts:
        run = runs.get(name, {})
        # A single retrieved chunk tells nothing about its order.
        if name not in places and broken.isdisjoint(run) and len(texts.keys() & run) > 1:
            places.update((one, (number, index)) for index, one in enumerate(run))
            number += 1
    return [places.get(chunk.id) for chunk in chunks]


def _run_from(first: str, following: Mapping[str, str]) -> dict[str, None]:
    """Return the ids that links connect with this one, in order."""
    run = {first: None}
    after = following.get(first)
    while after is not None and after not in run:
        run[after] = None
        after = following.get(after)
    return run


def _pages(chunks: Sequence[Chunk], fields: set[str], *, with_spans: bool) -> dict[str, list[Key | None]]:
    """Return the page fields that offsets may be relative to, with their keys, in the order in which they are tried."""
    pages: dict[str, list[Key | None]] = {}
    # The offsets of a span are relative to its own page, whatever the metadata contain.
    if with_spans and any(chunk.span is not None and chunk.span.page is not None for chunk in chunks):
        stated = [None if chunk.span is None else chunk.span.page for chunk in chunks]
        pages[_SPAN_PAGE] = label_keys(stated, any_label=True)
    for field in PAGE_FIELDS:
        if field in fields:
            pages[field] = label_keys([chunk.metadata.get(field) for chunk in chunks], any_label=field in _LABELS)
    # Names that contain pages or times differ within the source.
    named = [[chunk.metadata.get(field) for chunk in chunks] for field in ("source", "url") if field in fields]
    if SECONDS_FIELD in fields or any({*map(type, names)} != {str} or len({*names}) > 1 for names in named):
        parts = [source_parts(chunk.metadata) for chunk in chunks]
        seconds = [chunk.metadata.get(SECONDS_FIELD, part.seconds) for chunk, part in zip(chunks, parts, strict=True)]
        for field, values in (("source", [part.page for part in parts]), (SECONDS_FIELD, seconds)):
            if any(value is not None for value in values):
                pages[field] = label_keys(values, any_label=False)
    return pages


def _frames(
    chunks: Sequence[Chunk], offset_field: str, offsets: Sequence[Span | None], pages: dict[str, list[Key | None]]
) -> tuple[list[_Frame], dict[str, list[Key | None]]]:
    """Return the readings of the offsets that do not contradict themselves, and the pages that can be trusted.

    Offsets are tried relative to each page field, then to the source, until one covers every chunk. Where they
    contradict each other within a page label, the labels restart (as in merged files), unless each page is one
    document; where they do within a page number, which rarely restarts, the offsets restart, and the page is kept.
    """
    several = _ATTRIBUTE in offset_field.split(", ") and len({chunk.document_id for chunk in chunks}) > 1
    frames: list[_Frame] = []
    trusted = dict(pages)
    # Offsets with a page of their own are never relative to the source.
    no_page: list[Key | None] = [None if span is not None and span.page is not None else () for span in offsets]
    for page_field, keys in [*pages.items(), ("", no_page)] if offset_field else ():
        both = zip(keys, offsets, strict=True)
        claims = [None if page is None or span is None else (page, span[0], span[1]) for page, span in both]
        if _disagree(chunks, claims) or (not page_field and _begin_in_each_section(chunks, offset_field)):
            if page_field == LABEL_FIELD and not _is_document_each(chunks, keys):
                del trusted[page_field]
        elif not several or not _across_documents(chunks, claims):
            frames.append(_Frame(page_field, claims))
            if None not in claims:
                break
    return frames, trusted


def _is_document_each(chunks: Sequence[Chunk], pages: Sequence[Key | None]) -> bool:
    """Return whether the chunks of each page are known to be from one document."""
    documents: dict[Key | None, set[str | None]] = {}
    for chunk, page in zip(chunks, pages, strict=True):
        documents.setdefault(page, set()).add(chunk.document_id)
    return all(len(names) == 1 and None not in names for names in documents.values())


def _begin_in_each_section(chunks: Sequence[Chunk], offset_field: str) -> bool:
    """Return whether a splitter cut a Markdown or HTML file at its headings before another one wrote the offsets."""
    if _ATTRIBUTE in offset_field.split(", ") or not name_headings(chunk.metadata for chunk in chunks):
        return False
    return len({tuple(heading_levels(chunk.metadata)) for chunk in chunks}) > 1


def _across_documents(chunks: Sequence[Chunk], claims: Sequence[tuple[Key, int, int] | None]) -> bool:
    """Return whether offsets within one page (or one source, without pages) are relative to different documents.

    Documents are copies if one file can contain all of these chunks: on each page, one document contains all, and each
    chunk is in several documents but for those of one document, whose copies were not retrieved.
    """
    owners: dict[tuple[Key, int, int, str], set[str]] = {}
    for chunk, claim in zip(chunks, claims, strict=True):
        if claim is not None and chunk.document_id is not None:
            owners.setdefault((*claim, chunk.text), set()).add(chunk.document_id)
    of_page: dict[Key, list[set[str]]] = {}
    for (page, *_), documents in owners.items():
        of_page.setdefault(page, []).append(documents)
    if all(len(set().union(*documents)) == 1 for documents in of_page.values()):
        return False
    alone = set().union(*(documents for documents in owners.values() if len(documents) == 1))
    return len(alone) > 1 or not all(set.intersection(*documents) for documents in of_page.values())


def _stated(chunk: Chunk, fields: Sequence[str]) -> tuple[str, Span] | None:
    """Return the first of these fields that states an offset, and the offsets; only a framework's own have a page."""
    for field in fields:
        if field == _ATTRIBUTE:
            start, end, page = chunk.span or (None, None, None)
        else:
            start, end, page = chunk.metadata.get(field), chunk.metadata.get(START_FIELDS[field]), None
        # Inlined for plain integers: calling `whole` for each chunk would take most of the time.
        if type(start) is not int or not 0 <= start < TOO_LARGE:
            start = whole(start)
        if start is not None:
            if type(end) is not int or not start <= end < TOO_LARGE:
                end = whole(end)
            return field, Span(start, start + len(chunk.text) if end is None or end < start else end, page)
    return None


def stated_span(chunk: Chunk) -> Span | None:
    """Return the offsets of one chunk as its metadata or its framework states them, unverified."""
    stated = _stated(chunk, (*START_FIELDS, _ATTRIBUTE))
    return stated and stated[1]


def is_exact(chunk: Chunk, span: Span) -> bool:
    """Return whether the span is exactly as long as the chunk's text."""
    return span.end - span.start == len(chunk.text)


def kind_text(kind: PositionKind, field: str) -> str:
    """Return the number and name of a kind, as in the documentation, and the field that it was read from."""
    text = f"kind {kind.value}, {_KIND_NAMES[kind]}"
    if kind is PositionKind.PAGE and field.endswith(TIES_BY_STORE):
        field = f"{field.removesuffix(TIES_BY_STORE)} (ties in insertion order)"
    return f"{text}: {field}" if field else text


def _disagree(chunks: Sequence[Chunk], claims: Sequence[tuple[Key, int, int] | None]) -> bool:
    """Return whether two chunks claim the same characters but differ in text, as where offsets begin again."""
    texts: dict[tuple[Key, int, int], str] = {}
    for chunk, claim in zip(chunks, claims, strict=True):
        if claim is not None and texts.setdefault(claim, chunk.text) != chunk.text:
            return True
    exact: dict[Key, list[tuple[int, int, str]]] = {}
    for (page, start, end), text in texts.items():
        if end - start == len(text):
            exact.setdefault(page, []).append((start, end, text))
    return any(map(_overlap_differs, exact.values()))


def _overlap_differs(claimed: list[tuple[int, int, str]]) -> bool:
    """Return whether overlapping texts differ; compares each, in order of start, with the one that ends last so far."""
    claimed.sort()
    last_start, last_end, last_text = claimed[0]
    for start, end, text in claimed:
        if start < last_end:
            overlap, offset = min(end, last_end) - start, start - last_start
            if last_text[offset : offset + overlap] != text[:overlap]:
                return True
        if end > last_end:
            last_start, last_end, last_text = start, end, text
    return False


def _spans(chunks: Sequence[Chunk], offsets: Sequence[Span | None], frames: Sequence[_Frame]) -> Sequence[Span | None]:
    """Return the offsets with the page that they are relative to, from the first frame that covers most chunks."""
    field, claims = max(frames, key=lambda frame: len(frame.claims) - frame.claims.count(None))
    if not field:
        return offsets
    stated = [chunk.span and chunk.span.page if field == _SPAN_PAGE else chunk.metadata.get(field) for chunk in chunks]
    both = zip(stated, claims, strict=True)
    return [claim and Span(claim[1], claim[2], _shown(page, claim[0], field)) for page, claim in both]


def page_of(chunk: Chunk) -> str | int | None:
    """Return the page on which a chunk starts, preferably as printed: LangChain's loaders number `page` from 0."""
    metadata = with_usual_fields(chunk.metadata)
    if chunk.span is not None and chunk.span.page is not None:
        metadata = {**metadata, _SPAN_PAGE: chunk.span.page}
    for field in _SHOWN_PAGES:
        if metadata.get(field) is not None:
            (key,) = label_keys([metadata[field]], any_label=field in _LABELS)
            if key is not None:
                return _shown(metadata[field], key, field)
    return source_parts(chunk.metadata).page


def _shown(page: Any, key: Key, field: str) -> str | int:
    """Return a page for display; for a transcript this is a time."""
    if field == SECONDS_FIELD:
        return f"{key[1]} s"
    return key[1] if key[0] == NUMBERED and isinstance(key[1], int) else str(page).strip()


def by_position_key(chunks: Sequence[Chunk], position_key: PositionKey) -> Reading:
    """Read the positions with the caller's `position_key`; a chunk has none if any of its values is invalid."""
    if callable(position_key):
        name = getattr(position_key, "__name__", type(position_key).__name__)
        values = [position_key(chunk) for chunk in chunks]
    elif isinstance(position_key, str):
        name, values = position_key, [chunk.metadata.get(position_key) for chunk in chunks]
    else:
        name, values = ", ".join(position_key), [tuple(map(chunk.metadata.get, position_key)) for chunk in chunks]
    tuples = [tuple(value) if isinstance(value, tuple | list) else (value,) for value in values]
    sections = any(isinstance(part, str) and re.fullmatch(_SECTION, part.strip()) for parts in tuples for part in parts)
    keys = [tuple(_part(part, sections=sections) for part in parts) for parts in tuples]
    return Reading(PositionKind.KEY, name, [None if not key or None in key else key for key in keys])


def _part(value: Any, *, sections: bool) -> Key | None:
    """Convert a number, the number of a section, a text or a date to a comparable key."""
    text = value.strip() if isinstance(value, str) else ""
    number = None if sections and text else ordinal(value)
    if number is not None:
        return (0, number)
    if isinstance(value, date) or re.fullmatch(_AWARE, text):
        text = _in_utc(value)
    # A string with a negative number means "not found", like a negative number.
    return (1, *natural_key(text)) if text and not text.startswith("-") else None


def _in_utc(value: date | str) -> str:
    """Return a date in ISO format, in UTC if it has a time zone."""
    try:
        found = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        aware = isinstance(found, datetime) and found.utcoffset() is not None
        return (found.astimezone(UTC) if aware else found).isoformat()  # type: ignore[attr-defined]
    except (ValueError, OverflowError):
        return str(value).strip()


def ignores_offsets(facts: Facts) -> bool:
    """Return whether the chunks state offsets that were all ignored because they contradict each other."""
    return bool(facts.offset_field) and not any(facts.spans)
