"""Whether the metadata of all chunks of a source confirm that a store received them in the order of the source."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from oprag.positions.fields import (
    LABEL_FIELD,
    NUMBER_FIELDS,
    NUMBERING_FIELD,
    PAGE_NUMBER_FIELDS,
    READ_FIELDS,
    STAMP_FIELD,
    STAMPED_FIELDS,
    START_FIELDS,
    WITHIN_PAGE_FIELDS,
    is_by_store,
    with_usual_fields,
)
from oprag.positions.values import NUMBERED, Key, label_keys, ordinal

__all__ = ["Confirmed", "confirmed_order"]

# Minimum share of the chunks in a common order for two orders to agree, and minimum number of chunks for such a share;
# among fewer, one chunk may differ.
_AGREES = 0.95
_FEW = 20
# Minimum share and number of chunks with a value if others have none, since a few can rise by chance. Minimum number of
# chunks per part, since values in no order at all begin again at every other chunk.
_MIN_KNOWN = 0.2
_FEW_KNOWN = 6
_MIN_RUN = 2
_MAX_MOVED = 0.3  # share of the chunks that were added later

# Fields that may differ from chunk to chunk within a file.
_PLACES = frozenset({*READ_FIELDS, *START_FIELDS.values(), *WITHIN_PAGE_FIELDS, NUMBERING_FIELD}).union(
    ("doc_id", "id", "_id", "parent_document_id", "element_id", "parent_id", "_node_content")
)

_Known = list[tuple[int, Key]]


class Confirmed(NamedTuple):
    """The order of all chunks of a source.

    Attributes:
        field: The metadata field that confirms it.
        order: The index of each chunk in the sequence of the store, in the order of the source.
    """

    field: str
    order: list[int]


def confirmed_order(metadata: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Confirmed | None:
    """Return the order of the chunks of a source if a metadata field confirms the sequence of the store.

    A field confirms it if its values count up along the sequence. They may begin again, such as page labels of a file
    with several parts, or offsets that count from each page. A part that fills a gap of an earlier one was added later,
    and goes there. Otherwise, nearly all values must agree with the sequence: a value amid the sequence that does not
    is wrong, and one at its end belongs to a chunk that was added later.

    Args:
        metadata: The metadata of all chunks of the source, in the sequence of the store.
        texts: Their texts.
    """
    usual = [with_usual_fields(one) for one in metadata]
    present = {name for one in usual for name in one}
    # Numbers that were written from the sequence of the store do not confirm it.
    by_store = any(map(is_by_store, usual))
    for field in (*STAMPED_FIELDS, *START_FIELDS, *PAGE_NUMBER_FIELDS, LABEL_FIELD, *NUMBER_FIELDS):
        if field not in present or (field == STAMP_FIELD and by_store):
            continue
        known = _known([one.get(field) for one in usual], field)
        if len(known) < min(len(texts), max(_FEW_KNOWN, _MIN_KNOWN * len(texts))) or len({key for _, key in known}) < 2:
            continue
        distinct = field in STAMPED_FIELDS or field in START_FIELDS
        # Other numbers may be anything, such as a priority, so they must not begin again.
        order = None if field in NUMBER_FIELDS else _counted_up(known, usual, texts, distinct=distinct)
        order = order or _mostly_rising(known, texts, distinct=distinct)
        if order is not None:
            return Confirmed(field, order)
    return None


def _known(values: list[Any], field: str) -> _Known:
    """Return the valid values as comparable keys, with their indices; the first part of a key is its style."""
    if field == LABEL_FIELD:
        keys = label_keys(values, any_label=True)
    else:
        numbers = [ordinal(value) for value in values]
        keys = [None if number is None else (NUMBERED, number) for number in numbers]
    return [(index, key) for index, key in enumerate(keys) if key is not None]


def _style(key: Key) -> Any:
    """The style of a label: roman, a number, or the text before the number, such as "A-"."""
    return key[0] if len(key) == 2 else (key[0], key[1][2] if key[1][0] else "")


def _counted_up(
    known: _Known, metadata: Sequence[Mapping[str, Any]], texts: Sequence[str], *, distinct: bool
) -> list[int] | None:
    """Return the order if the values count up in parts, each of which begins low or fills a gap of an earlier part."""
    lowest: dict[Any, Key] = {}
    for _, key in known:
        style = _style(key)
        lowest[style] = min(key, lowest.get(style, key))
    parts: list[_Known] = []
    for index, key in known:
        if parts and _follows(parts[-1][-1], (index, key), texts, distinct=distinct):
            parts[-1].append((index, key))
        else:
            parts.append([(index, key)])
    if len(known) < _MIN_RUN * len(parts) or _repeats(parts, texts) or _are_files(parts, metadata):
        return None
    moved: dict[int, int] = {}
    for number, part in enumerate(parts[1:], 1):
        after = _gap(part, parts[:number])
        if after is None and moved:
            # What was added later is at the end.
            return None
        if after is not None:
            # All chunks up to the next part, also those without a value.
            end = parts[number + 1][0][0] if number + 1 < len(parts) else len(texts)
            moved.update(dict.fromkeys(range(part[0][0], end), after))
        elif not _begins_again(part, parts[:number], lowest):
            return None
    # If many chunks are out of turn, the sequence as a whole is not confirmed.
    return _with_moved(len(texts), moved) if len(moved) <= _MAX_MOVED * len(texts) else None


def _follows(before: tuple[int, Key], after: tuple[int, Key], texts: Sequence[str], *, distinct: bool) -> bool:
    (first, low), (second, high) = before, after
    if _style(low) != _style(high):
        return False
    # Two texts cannot have the same number, unless it is that of a page.
    return low < high or (low == high and (not distinct or texts[first] == texts[second]))


def _begins_again(part: _Known, earlier: Sequence[_Known], lowest: Mapping[Any, Key]) -> bool:
    """Return whether a part begins low, and either in a new style or with values of an earlier part.

    A part without values of an earlier one may be a piece of the same numbering that was added out of turn.
    """
    first = part[0][1]
    number = first[1] if len(first) == 2 else None
    if first != lowest[_style(first)] and (number is None or number > 1):
        return False
    values = {key for _, key in part}
    others = [{key for _, key in other} for other in earlier if _style(other[0][1]) == _style(first)]
    return not others or any(
        first in other or 2 * len(values & other) >= min(len(values), len(other)) for other in others
    )


def _gap(part: _Known, earlier: Sequence[_Known]) -> int | None:
    """Return the index of the chunk after which a part fills a gap of an earlier part; None if it fills none."""
    first, last = part[0][1], part[-1][1]
    for other in earlier:
        keys = [key for _, key in other]
        if _style(keys[0]) != _style(first):
            continue
        place = bisect_right(keys, first)
        if 0 < place < len(keys) and keys[place - 1] < first and last < keys[place]:
            return other[place - 1][0]
    return None


def _repeats(parts: Sequence[_Known], texts: Sequence[str]) -> bool:
    """Return whether a part shares most of its texts with an earlier one, so that one of them was added again."""
    sets = [{texts[index] for index, _ in part} for part in parts]
    owners: dict[str, int] = {}
    for number, own in enumerate(sets):
        shared = Counter(owners[text] for text in own if text in owners)
        if any(2 * count > min(len(own), len(sets[earlier])) for earlier, count in shared.items()):
            return True
        owners |= dict.fromkeys(own, number)
    return False


def _are_files(parts: Sequence[_Known], metadata: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a field that is neither a position nor an id tells all parts apart, as for files of one name."""
    if len(parts) < 2:
        return False
    for field in metadata[parts[0][0][0]].keys() - _PLACES:
        values = [{repr(metadata[index].get(field)) for index, _ in part} for part in parts]
        if all(len(one) == 1 for one in values) and len(set.union(*values)) == len(parts):
            return True
    return False


def _mostly_rising(known: _Known, texts: Sequence[str], *, distinct: bool) -> list[int] | None:
    """Return the order if nearly all values agree with the sequence."""
    rising = _longest_rising([key for _, key in known], distinct=distinct)
    allowed = 1 if len(known) < _FEW else (1 - _AGREES) * len(known)
    if len(known) < 4 or len(known) - len(rising) > allowed:
        return None
    kept = [known[place] for place in rising]
    within = {index for index, _ in kept}
    strays = dict(one for one in known if one[0] not in within)
    keys = [key for _, key in kept]
    moved: dict[int, int] = {}
    # A chunk at the end was added later; amid the sequence, its value is wrong.
    for index in takewhile(strays.__contains__, range(len(texts) - 1, -1, -1)):
        place = bisect_right(keys, strays[index])
        around = {texts[one] for one, _ in kept[max(0, place - 1) : place + 1]}
        if texts[index] not in around and any(texts[index] in text for text in around):
            # The value is that of an earlier repetition of its text, as splitters write it that search for offsets.
            break
        moved[index] = kept[place - 1][0] if place else -1
    return _with_moved(len(texts), moved)


def _longest_rising(keys: Sequence[Key], *, distinct: bool) -> list[int]:
    """Return the places of a longest subsequence that rises, strictly if `distinct`."""
    find = bisect_left if distinct else bisect_right
    ends: list[Key] = []
    at: list[int] = []
    before: list[int | None] = []
    for place, key in enumerate(keys):
        length = find(ends, key)
        before.append(at[length - 1] if length else None)
        ends[length : length + 1] = [key]
        at[length : length + 1] = [place]
    found: list[int] = []
    place_before = at[-1] if at else None
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
