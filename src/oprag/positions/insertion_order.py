"""Whether the metadata of all chunks of a source confirm that a store received them in the order of the source."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any, NamedTuple

from oprag.chunk import Chunk, Key, Span
from oprag.positions.fields import (
    LABEL_FIELD,
    NUMBER_FIELDS,
    PAGE_NUMBER_FIELDS,
    STAMP_FIELD,
    STAMPED_FIELDS,
    START_FIELDS,
    USED_FIELDS,
    heading_levels,
    is_by_store,
)
from oprag.positions.readings import LOCATED, numberings
from oprag.positions.values import NUMBERED, label_keys, ordinal, whole

__all__ = ["Witness", "agreed_order", "confirmed_order"]

# Minimum share of the chunks in a common order for two orders to agree, and minimum number of chunks for such a share;
# among fewer, one chunk may differ.
_AGREES = 0.95
_FEW = 20
# Minimum share and number of chunks with a value if others have none, since a few can rise by chance. Minimum number of
# chunks per part, since values in no order at all begin again at every other chunk.
_MIN_KNOWN = 0.2
_FEW_KNOWN = 6
_MIN_RUN = 2
_MIN_AGAIN = 3  # chunks of the second of two parts whose numbers begin again
_MIN_PAGES = 3  # of a part that begins again; fewer may be edited pages
_FEWER = 3  # times fewer chunks on a page
_NUMBERED_LENGTH = 2  # of the key of a number; other labels have more parts
_MAX_MOVED = 0.3  # share of the chunks that were added later
_MIN_RISING = 4  # values that rise by chance are fewer

# Fields that may differ from chunk to chunk within a file.
_PLACES = USED_FIELDS.union(("doc_id", "id", "_id", "parent_document_id", "element_id", "parent_id", "_node_content"))

# Several chunks share a page or another number; other values belong to one text.
_PAGES = frozenset({*PAGE_NUMBER_FIELDS, LABEL_FIELD, *NUMBER_FIELDS})

_Known = list[tuple[int, Key]]


class Witness(NamedTuple):
    """The order of all chunks of a source, told by a field together with the sequence of the store."""

    field: str
    order: list[int]  # the index of each chunk in the sequence of the store, in the order of the source
    unsure: frozenset[int] = frozenset()  # the chunks whose place neither tells for certain
    # The number of the file, section or version of each chunk, if page numbers or offsets begin again, as they do in no
    # file that was split as a whole; only the sequence tells the order of these.
    files: tuple[int, ...] = ()
    wrong: frozenset[int] = frozenset()  # the chunks whose offset is wrong, as the sequence shows


class _Series(NamedTuple):
    """The values of a field along the sequence of a store."""

    known: _Known  # the valid ones as comparable keys, with the indices of their chunks
    texts: Sequence[str]  # of all chunks
    distinct: bool  # whether two chunks of different text cannot share a value
    start: int = 0  # where a key has a start offset in characters, counted from its end; 0 if it has none
    is_page: bool = False  # whether these are page numbers, which do not begin again in one file
    is_exact: bool = False  # whether these are places in the text of the source, which cannot be wrong


def confirmed_order(
    chunks: Sequence[Chunk], located: Sequence[Span | None], overlaps: Sequence[int], *, complete: bool = True
) -> Witness | None:
    """Return the order of the chunks of a source if a field confirms the sequence in which the store received them.

    The values of such a field count up along the sequence, but for restarts (labels of a file with several parts, pages
    of several files, offsets of each page) and parts that fill a gap, which were added later; or nearly all agree with
    the sequence: a value amid it that does not is wrong, and one at its end belongs to a chunk that was added later.
    """
    texts = [chunk.text for chunk in chunks]
    # Values of a part of the chunks must not begin again, and where page numbers contradict the sequence, none may.
    against = not complete
    for field, values in _values(chunks, located):
        known = _known(values, field)
        if len(known) < min(len(texts), max(_FEW_KNOWN, _MIN_KNOWN * len(texts))) or len({key for _, key in known}) < 2:
            continue
        is_page = field in PAGE_NUMBER_FIELDS
        start = -1 if field == LOCATED or field in START_FIELDS else 0
        series = _Series(known, texts, field not in _PAGES, start, is_page, is_exact=field == LOCATED)
        # Other numbers may be anything, such as a priority, so they must not begin again.
        again = field not in {*NUMBER_FIELDS, LOCATED} and not against
        witness = (_counted_up(series, chunks) if again else None) or _mostly_rising(series)
        if witness is not None:
            stated = [value is not None for value in values]
            unsure = _unsure_edges(known, stated, overlaps) | _without_room(series)
            return witness._replace(field=field, unsure=witness.unsure | unsure)
        against = against or (is_page and len(known) == len(texts))
    return None


def _values(chunks: Sequence[Chunk], located: Sequence[Span | None]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the fields that may confirm a sequence, with the value of each chunk; pages first: others may restart."""
    if any(located):
        yield LOCATED, [span and span.start for span in located]
    metadata = [chunk.metadata for chunk in chunks]
    present = {name for one in metadata for name in one}
    if any(map(is_by_store, metadata)) or len(numberings(chunks)) > 1:
        # Numbers that were copied from the store order cannot confirm it, and neither can numbers from several calls.
        present.discard(STAMP_FIELD)
    for field in (*PAGE_NUMBER_FIELDS, *STAMPED_FIELDS, *START_FIELDS, LABEL_FIELD, *NUMBER_FIELDS):
        if field in present:
            yield field, [one.get(field) for one in metadata]


def agreed_order(keys: Sequence[Key | None], chunks: Sequence[Chunk], *, offsets: bool) -> Witness | None:
    """Return the order if nearly all of these distinct keys, or offsets, agree with the sequence of the store."""
    known = [(index, key) for index, key in enumerate(keys) if key is not None]
    # Copies of a chunk share its key.
    return _mostly_rising(_Series(known, [chunk.text for chunk in chunks], distinct=True, start=-2 if offsets else 0))


def _unsure_edges(known: _Known, stated: Sequence[bool], overlaps: Sequence[int]) -> frozenset[int]:
    """Return the chunks without the field at both ends that nothing connects: another call may have added them."""
    unsure: set[int] = set()
    for step, edge, end in ((-1, known[0][0], -1), (1, known[-1][0], len(stated))):
        connected = True
        for index in range(edge + step, end, step):
            connected = connected and (stated[index] or bool(overlaps[min(index, index - step)]))
            if not connected and not stated[index]:
                unsure.add(index)
    return frozenset(unsure)


def _without_room(series: _Series) -> frozenset[int]:
    """Return the chunks without an offset that do not fit where they are, or at the end, and fit elsewhere.

    After an edit, a chunk is added again at the end, or all other ones are.
    """
    known, texts = series.known, series.texts
    if not series.start:
        return frozenset()
    unsure: set[int] = set()
    free = 0
    last, low, end = -1, known[0][1], 0
    for index, key in known:
        room = key[series.start] - end
        needed = sum(len(texts[one]) for one in range(last + 1, index))
        if last < 0 or low < key:
            if room < needed / 2:
                unsure.update(range(last + 1, index))
            else:
                free = max(free, room - needed)
        last, low, end = index, key, key[series.start] + len(texts[index])
    unsure.update(index for index in range(last + 1, len(texts)) if 2 * free >= len(texts[index]))
    return frozenset(unsure)


def _known(values: list[Any], field: str) -> _Known:
    """Return the valid values as comparable keys, with their indices; the first part of a key is its style."""
    if field == LABEL_FIELD:
        keys = label_keys(values, any_label=True)
    else:
        read = whole if field in START_FIELDS else ordinal
        numbers = [read(value) for value in values]
        keys = [None if number is None else (NUMBERED, number) for number in numbers]
    return [(index, key) for index, key in enumerate(keys) if key is not None]


def _style(key: Key) -> Any:
    """The style of a label: roman, a number, or the text before the number, such as "A-"."""
    return key[0] if len(key) == _NUMBERED_LENGTH else (key[0], key[1][2] if key[1][0] else "")


def _counted_up(series: _Series, chunks: Sequence[Chunk]) -> Witness | None:
    """Return the order if the values count up in parts, each of which begins low or fills a gap of an earlier part."""
    parts: list[_Known] = []
    for one in series.known:
        if parts and _follows(parts[-1][-1], one, series):
            parts[-1].append(one)
        else:
            parts.append([one])
    if len(series.known) < _MIN_RUN * len(parts) or _are_files(parts, chunks) or _is_edit(parts, series):
        return None
    count = len(chunks)
    moved = _moved(parts, series)
    # If many chunks are out of turn, the sequence as a whole is not confirmed.
    if moved is None or len(moved) > _MAX_MOVED * count:
        return None
    witness = Witness("", _with_moved(count, moved))
    files = [part for part in parts if part[0][0] not in moved]
    # They begin again in sections, in files of one name, and in a file that was edited and added again.
    if not (series.is_page or series.distinct) or len(files) == 1:
        return witness
    starts = [file[0][0] for file in files[1:]]
    paths = [heading_levels(chunk.metadata) for chunk in chunks] if series.start else []
    starts = sorted({*starts, *(index for index in range(1, len(paths)) if paths[index] != paths[index - 1])})
    return witness._replace(files=tuple(bisect_right(starts, moved.get(index, index)) for index in range(count)))


def _moved(parts: Sequence[_Known], series: _Series) -> dict[int, int] | None:
    """Return the chunks of parts that fill a gap, each with the chunk that it follows; None if a part begins amid."""
    lowest: dict[Any, Key] = {}
    for _, key in chain.from_iterable(parts):
        style = _style(key)
        lowest[style] = min(key, lowest.get(style, key))
    moved: dict[int, int] = {}
    for number, part in enumerate(parts):
        after = _gap(part, parts[:number])
        if after is not None:
            # All chunks up to the next part, also those without a value.
            end = parts[number + 1][0][0] if number + 1 < len(parts) else len(series.texts)
            moved.update(dict.fromkeys(range(part[0][0], end), after))
        # What was added later is at the end.
        elif moved or (len(parts) > 1 and not _begins_again(part, parts[:number], lowest)):
            return None
    return moved


def _follows(before: tuple[int, Key], after: tuple[int, Key], series: _Series) -> bool:
    (first, low), (second, high) = before, after
    if _style(low) != _style(high):
        return False
    # Two texts cannot have the same number, unless it is that of a page.
    return low < high or (low == high and (not series.distinct or series.texts[first] == series.texts[second]))


def _begins_again(part: _Known, earlier: Sequence[_Known], lowest: Mapping[Any, Key]) -> bool:
    """Return whether a part begins low, in a new style or with values of an earlier part; else it is out of turn."""
    first = part[0][1]
    if not _is_low(first, lowest):
        return False
    values = {key for _, key in part}
    others = [{key for _, key in other} for other in earlier if _style(other[0][1]) == _style(first)]
    return not others or any(
        first in other or 2 * len(values & other) >= min(len(values), len(other)) for other in others
    )


def _is_low(first: Key, lowest: Mapping[Any, Key]) -> bool:
    """Return whether a numbering begins with this value."""
    number = first[1] if len(first) == _NUMBERED_LENGTH else None
    return first == lowest[_style(first)] or (number is not None and number <= 1)


def _is_edit(parts: Sequence[_Known], series: _Series) -> bool:
    """Return whether the last part may be edited chunks of an earlier one: a few, or those of few or of all pages."""
    *earlier, last = parts
    if series.distinct:
        return len(earlier) == 1 and len(last) < _MIN_AGAIN
    keys = {key for _, key in last}
    for part in earlier:
        others = {key for _, key in part}
        # The pages of a part have about as many chunks as those of another one.
        fewer = _FEWER * len(last) * len(others) <= len(part) * len(keys)
        if not keys.isdisjoint(others) and (fewer or len(keys) < _MIN_PAGES):
            return True
    return False


def _gap(part: _Known, earlier: Sequence[_Known]) -> int | None:
    """Return the index of the chunk after which a part fills a gap of an earlier part; None if it fills none."""
    first, last = part[0][1], part[-1][1]
    for other in earlier:
        keys = [key for _, key in other]
        place = bisect_right(keys, first)
        if 0 < place < len(keys) and keys[place - 1] < first and last < keys[place]:
            return other[place - 1][0]
    return None


def _are_files(parts: Sequence[_Known], chunks: Sequence[Chunk]) -> bool:
    """Return whether a field that is neither a position nor an id tells all parts apart, as for files of one name."""
    if len(parts) < 2:
        return False
    for field in chunks[parts[0][0][0]].metadata.keys() - _PLACES:
        values = [{repr(chunks[index].metadata.get(field)) for index, _ in part} for part in parts]
        if all(len(one) == 1 for one in values) and len(set.union(*values)) == len(parts):
            return True
    return False


def _mostly_rising(series: _Series) -> Witness | None:
    """Return the order if nearly all values agree with the sequence."""
    known, texts = series.known, series.texts
    inside = _inside_earlier(series)
    among = [one for one in known if one[0] not in inside] if len(inside) <= _MAX_MOVED * len(known) else known
    rising = _longest_rising([key for _, key in among], distinct=series.distinct)
    kept = [among[place] for place in rising]
    within = {index for index, _ in kept}
    strays = dict(one for one in known if one[0] not in within)
    keys = [key for _, key in kept]
    # Splitters that search for offsets write that of the first occurrence of a text for each of them, even if it is
    # inside another chunk.
    first = {(key, texts[index]) for index, key in kept}
    others = {index for index, key in strays.items() if (key, texts[index]) not in first}
    repeats = {index for index in others if _is_inside(texts[index], strays[index], kept, keys, texts)}
    wrong = len(others) - len(repeats)
    last = kept[-1][0]
    most = 1 if len(known) < _FEW else (1 - _AGREES) * len(known)
    if series.is_page and all(index > last for index in strays):
        # Chunks of edited pages are at the end.
        most = max(most, _MAX_MOVED * len(known))
    if len(known) < _MIN_RISING or wrong > most:
        return None
    moved: dict[int, int] = {}
    unsure: set[int] = set()
    refuted: set[int] = set()
    indices = {index for index, _ in known}
    for index, key in strays.items():
        place = bisect_right(keys, key)
        if index < last and not series.distinct:
            # Its page can be wrong, or its place in the sequence, or those of the chunks after it.
            unsure.update([index, *(one for one, value in kept if one > index and value < key)])
            continue
        if index in repeats or (index < last and not series.is_exact and _has_room(index, kept, series)):
            if series.start:
                refuted.add(index)
            continue
        # It was added later.
        moved[index] = kept[place - 1][0] if place else -1
        if place and keys[place - 1] == key and (key, texts[index]) not in first:
            # Its page has other chunks, or its number another text.
            unsure.add(index)
        low, high = (kept[one][0] if 0 <= one < len(kept) else -1 for one in (place - 1, place))
        if not indices.issuperset(range(low + 1, high)):
            # It may also belong after a chunk without a value there.
            unsure.add(index)
        if index > last:
            # Chunks without a value after it were added with it, and those before it may have been.
            after = [*takewhile(lambda one: one not in indices, range(index + 1, len(texts)))]
            moved.update(dict.fromkeys(after, index))
            unsure.update(after, takewhile(lambda one: one not in indices, range(index - 1, -1, -1)))
    return Witness("", _with_moved(len(texts), moved), frozenset(unsure), wrong=frozenset(refuted))


def _inside_earlier(series: _Series) -> set[int]:
    """Return the chunks whose offset is amid a chunk added before them, as a splitter finds a short text too early."""
    known, texts = series.known, series.texts
    if not series.start or series.is_exact:
        return set()
    start, inside = series.start, set[int]()
    by_offset = sorted(known, key=lambda one: (one[1][:start], one[1][start], -len(texts[one[0]])))
    before, low = by_offset[0]
    for number, (index, key) in enumerate(by_offset[1:], 2):
        length, whole = len(texts[index]), len(texts[before])
        at = key[start] - low[start] if key[:start] == low[:start] else -1
        # The last window of a text may be the end of the one before it, without room for another chunk after it.
        _, after = by_offset[min(number, len(by_offset) - 1)]
        room = after[start] - low[start] - whole if after[:start] == low[:start] else 0
        is_found = before < index and at >= 0 and texts[before].startswith(texts[index], at)
        if is_found and (at + length < whole or (room >= length and at + length == whole)):
            inside.add(index)
        else:
            before, low = index, key
    return inside


def _is_inside(text: str, key: Key, kept: _Known, keys: Sequence[Key], texts: Sequence[str]) -> bool:
    """Return whether a text is inside that of a chunk at its value."""
    place = bisect_right(keys, key)
    return any(text in texts[one] for one, _ in kept[max(0, place - 1) : place + 1])


def _has_room(index: int, kept: _Known, series: _Series) -> bool:
    """Return whether a chunk amid the sequence can be where the sequence has it, so that its value is wrong."""
    at = bisect_left(kept, index, key=lambda one: one[0])
    start, texts = series.start, series.texts
    if not start or not at:
        return True
    (before, low), (_, high) = kept[at - 1], kept[at]
    return low[:start] != high[:start] or high[start] - low[start] - len(texts[before]) >= len(texts[index]) / 2


def _longest_rising(keys: Sequence[Key], *, distinct: bool) -> list[int]:
    """Return the places of a longest subsequence that rises, strictly if `distinct`."""
    find = bisect_left if distinct else bisect_right
    ends: list[Key] = []
    at: list[int] = []
    before: list[int | None] = []
    last: int | None = None
    for place, key in enumerate(keys):
        length = find(ends, key)
        before.append(at[length - 1] if length else None)
        if length == len(ends):
            # The first one of this length: what comes after it was added later.
            last = place
        ends[length : length + 1] = [key]
        at[length : length + 1] = [place]
    found: list[int] = []
    place_before = last
    while place_before is not None:
        found.append(place_before)
        place_before = before[place_before]
    return found[::-1]


def _with_moved(count: int, moved: Mapping[int, int]) -> list[int]:
    """Return all indices in order, with some of them directly after another one; -1 is before all others."""
    following: dict[int, list[int]] = {}
    for index, after in sorted(moved.items()):
        following.setdefault(after, []).append(index)
    order: list[int] = []
    left = [*reversed([*following.get(-1, ()), *(index for index in range(count) if index not in moved)])]
    while left:
        index = left.pop()
        order.append(index)
        left.extend(reversed(following.get(index, ())))
    return order
