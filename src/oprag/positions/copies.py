"""Copies of chunks in a listing: a source, or a part of it, that was added to a store again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from oprag.chunk import Chunk
from oprag.positions.fields import (
    NUMBERING_FIELD,
    READ_FIELDS,
    SOURCE_FIELDS,
    STAMP_FIELD,
    STAMPED_FIELDS,
    START_FIELDS,
)
from oprag.positions.overlaps import overlap_of
from oprag.positions.values import comparable

__all__ = ["Again", "copies_of", "stated_place"]

# Minimum number of different texts that occur again in a row amid a listing; fewer may come from a source that repeats
# itself.
_MIN_REPEATED = 5
# Minimum characters of a text that occurs again at the end of a listing; a shorter one may be a refrain.
_MIN_LENGTH = 100
_MIN_SHARE = 4  # a version that repeats one in this many chunks of a listing
_MAX_HEAD = 3  # edited chunks at the start of a second version

# A place that only one text of the source has.
_EXACT = frozenset({*START_FIELDS, *STAMPED_FIELDS})
_PLACES = READ_FIELDS.difference(SOURCE_FIELDS)


class Again(NamedTuple):
    """A chunk that was added again."""

    first: int  # the index of its first occurrence; for an edited chunk, that of the chunk before it
    edited: bool  # whether its text differs from that of the earlier version


class _Part(NamedTuple):
    """A part of a listing that repeats an earlier one."""

    start: int
    length: int
    target: int  # the index of the first chunk of the earlier part


def copies_of(chunks: Sequence[Chunk], *, by_text: bool = False) -> Mapping[int, Again]:
    """Return the chunks of a listing in store order that were added again, by their indices."""
    stamped = len({comparable(chunk.metadata.get(NUMBERING_FIELD)) for chunk in chunks}) == 1
    names = [(chunk.text, (), None) if by_text else _identity(chunk, stamped=stamped) for chunk in chunks]
    first: dict[Any, int] = {}
    for index, name in enumerate(names):
        first.setdefault(name, index)
    found: dict[int, Again] = {}
    versions = [parts for parts in _versions(_repeated_parts(names, first)) if _is_again(chunks, names, parts)]
    if by_text:
        # Boilerplate is repeated as well, but not most of a version.
        versions = [one for one in versions if _MIN_SHARE * sum(part.length for part in one) >= len(names)]
    for part in chain.from_iterable(versions):
        found.update((part.start + one, Again(part.target + one, edited=False)) for one in range(part.length))
    for index, before in chain.from_iterable(_edited(parts, len(names)) for parts in versions):
        found.setdefault(index, Again(before, edited=True))
    for index in sorted(found):
        again = found[index]
        if earlier := found.get(again.first):
            found[index] = Again(earlier.first, again.edited or earlier.edited)
    return found


def _identity(chunk: Chunk, *, stamped: bool) -> Any:
    """Return what two copies of a chunk share: the text, and what tells its place, with stamps of one numbering."""
    place = stated_place(chunk.metadata)
    if not stamped and chunk.metadata.get(NUMBERING_FIELD) is not None:
        # Each call of a stamping step begins at 0.
        place = tuple(stated for stated in place if stated[0] != STAMP_FIELD)
    return chunk.text, place, chunk.span


def stated_place(metadata: Mapping[str, Any]) -> tuple[tuple[str, int | float | str], ...]:
    """Return what metadata state about the place of a chunk; stores may return numbers in another form."""
    return tuple((name, comparable(metadata[name])) for name in sorted(metadata.keys() & _PLACES))


def _repeated_parts(names: Sequence[Any], first: Mapping[Any, int]) -> Iterator[_Part]:
    """Yield the longest parts that repeat an earlier one in the same sequence."""
    start = 0
    while start < len(names):
        target, length = first[names[start]], 0
        while target + length < start < len(names) - length and names[start + length] == names[target + length]:
            length += 1
        if length:
            yield _Part(start, length, target)
        start += max(1, length)


def _versions(parts: Iterable[_Part]) -> list[list[_Part]]:
    """Group parts that repeat an earlier version with changes between them, which are fewer than the copies."""
    versions: list[list[_Part]] = []
    for part in parts:
        last = versions[-1] if versions else []
        copied = sum(one.length for one in last) + part.length
        goes_on = last and part.target >= last[-1].target + last[-1].length
        if goes_on and 2 * copied > part.start + part.length - last[0].start:
            last.append(part)
        else:
            versions.append([part])
    return versions


def _is_again(chunks: Sequence[Chunk], names: Sequence[Any], parts: Sequence[_Part]) -> bool:
    """Return whether parts that repeat earlier ones were added again, instead of being repetitions in the text."""
    start, length, target = parts[-1]
    if len({name for part in parts for name in names[part.start : part.start + part.length]}) >= _MIN_REPEATED:
        # What is repeated in the midst of both, such as the boilerplate of reports in one file, is part of the text.
        from_start = parts[0].target <= _MAX_HEAD
        to_end = target + length >= parts[0].start - _MAX_HEAD
        return from_start or to_end or start + length == len(names)
    # The version begins before the first part if its first chunks were edited.
    begin = parts[0].start - (parts[0].target if parts[0].target <= _MAX_HEAD else 0)
    copied = sum(part.length for part in parts)
    falls = _turn(names[begin - 1][1], names[begin][1]) < 0
    if copied > 1 and 2 * copied >= len(names) - begin and falls:
        return True
    if len(parts) > 1 or start + length < len(names):
        return False
    turn = _turn(names[start - 1][1], names[start][1])
    if turn and _EXACT.isdisjoint(name for name, _ in names[start][1]):
        return turn < 0
    # An overlap shows that the source goes on.
    goes_on = overlap_of(chunks[start - 1].text, chunks[start].text)
    return not goes_on and all(len(chunk.text) >= _MIN_LENGTH for chunk in chunks[start:])


def _turn(before: Sequence[tuple[str, Any]], after: Sequence[tuple[str, Any]]) -> int:
    """Return 1 if the first number that two chunks state rises, -1 if it falls, 0 if it does neither."""
    for (name, low), (other, high) in zip(before, after, strict=False):
        if name == other and low != high:
            return 0 if isinstance(low, str) or isinstance(high, str) else 1 if low < high else -1
    return 0


def _edited(parts: Sequence[_Part], count: int) -> Iterator[tuple[int, int]]:
    """Yield the chunks of a later version that are not copies, each with the chunk that it follows."""
    for part, following in pairwise(parts):
        for index in range(part.start + part.length, following.start):
            yield index, part.target + part.length - 1
    # The first version goes on after the last part, and so does the later one.
    first, last = parts[0], parts[-1]
    end, after = last.start + last.length, last.target + last.length
    if 0 < first.target <= _MAX_HEAD and first.start - first.target >= after:
        for index in range(first.start - first.target, first.start):
            yield index, first.target - 1
    for index in range(end, min(count, end + first.start - after)):
        yield index, after - 1
