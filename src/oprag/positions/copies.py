"""Copies of chunks in a listing: a source, or a part of it, that was added to a store again."""

from __future__ import annotations

from collections.abc import Sequence
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
from oprag.positions.values import ordinal

__all__ = ["Copies", "copies_of"]

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


class _Part(NamedTuple):
    """A part of a listing that repeats an earlier one.

    Attributes:
        start: The index of its first chunk.
        length: Number of its chunks.
        target: The index of the first chunk of the earlier part.
    """

    start: int
    length: int
    target: int


class Copies(NamedTuple):
    """The chunks of a listing that were added again.

    Attributes:
        of: The index of the first occurrence, by the index of each copy.
        edited: The index of the chunk that comes before it, by the index of each chunk of a later version that is not
            a copy.
    """

    of: dict[int, int]
    edited: dict[int, int]


def copies_of(chunks: Sequence[Chunk], *, by_text: bool = False) -> Copies | None:
    """Return the copies in a listing that is in store order, or None if it has none.

    Args:
        chunks: The chunks.
        by_text: Whether to compare texts alone.
    """
    stamped = len({str(chunk.metadata.get(NUMBERING_FIELD)) for chunk in chunks}) == 1
    names = [(chunk.text, (), None) if by_text else _identity(chunk, stamped=stamped) for chunk in chunks]
    first: dict[Any, int] = {}
    for index, name in enumerate(names):
        first.setdefault(name, index)
    if len(first) == len(names):
        return None
    parts = _chains(_repeated_parts(names, first))
    again = [one for one in parts if _is_again(chunks, names, one)]
    if by_text:
        # Boilerplate is repeated as well, but not most of a version.
        again = [one for one in again if _MIN_SHARE * sum(part.length for part in one) >= len(names)]
    of: dict[int, int] = {}
    for start, length, target in chain.from_iterable(again):
        of.update((start + one, of.get(target + one, target + one)) for one in range(length))
    edited: dict[int, int] = {}
    for one in again:
        edited.update(_edited(one, len(names)))
    edited = {index: of.get(after, after) for index, after in edited.items() if index not in of}
    return Copies(of, edited) if of else None


def _repeated_parts(names: Sequence[Any], first: dict[Any, int]) -> list[_Part]:
    """Return the longest parts that repeat an earlier one in the same sequence."""
    parts: list[_Part] = []
    index = 0
    while index < len(names):
        target = first[names[index]]
        if parts:
            # A text that the source repeats: after a changed chunk, the next one is expected.
            before = parts[-1]
            expected = before.target + index - before.start
            target = expected if expected < index and names[expected] == names[index] else target
        length = 0
        while index + length < len(names) and target + length < index:
            if names[index + length] != names[target + length]:
                break
            length += 1
        if length:
            parts.append(_Part(index, length, target))
        index += max(1, length)
    return parts


def _chains(parts: Sequence[_Part]) -> list[list[_Part]]:
    """Group parts that repeat an earlier version with changes between them, which are fewer than the copies."""
    chains: list[list[_Part]] = []
    for part in parts:
        if chains:
            last = chains[-1]
            before = last[-1]
            copied = sum(one.length for one in last) + part.length
            dense = 2 * copied > part.start + part.length - last[0].start
            if dense and part.target >= before.target + before.length:
                last.append(part)
                continue
        chains.append([part])
    return chains


def _identity(chunk: Chunk, *, stamped: bool) -> Any:
    """Return what two copies of a chunk share: the text, and what tells its place, with stamps of one numbering."""
    metadata = chunk.metadata
    ours = not stamped and metadata.get(NUMBERING_FIELD) is not None
    places = [
        (name, str(metadata[name]) if (number := ordinal(metadata[name])) is None else number)
        for name in metadata.keys() & _PLACES
        # Each call of a stamping step begins at 0.
        if not (ours and name == STAMP_FIELD)
    ]
    return chunk.text, tuple(sorted(places, key=lambda one: one[0])), chunk.span


def _is_again(chunks: Sequence[Chunk], names: Sequence[Any], again: Sequence[_Part]) -> bool:
    """Return whether parts that repeat earlier ones were added again, instead of being repetitions in the text."""
    if len({names[part.start + one] for part in again for one in range(part.length)}) >= _MIN_REPEATED:
        return True
    (start, length, _), *others = again
    if others or start + length < len(names):
        return False
    turn = _turn(names[start - 1][1], names[start][1])
    linked = chunks[start].previous_id is not None and chunks[start].previous_id == chunks[start - 1].id
    exact = not _EXACT.isdisjoint(name for name, _ in names[start][1])
    if linked or (turn and not exact):
        return turn < 0 and not linked
    long = all(len(chunk.text) >= _MIN_LENGTH for chunk in chunks[start:])
    return long and (exact or not overlap_of(chunks[start - 1].text, chunks[start].text))


def _turn(before: Sequence[tuple[str, Any]], after: Sequence[tuple[str, Any]]) -> int:
    """Return 1 if the first number that two chunks state rises, -1 if it falls, 0 if it does neither."""
    for (name, low), (other, high) in zip(before, after, strict=False):
        if name == other and low != high:
            return 0 if isinstance(low, str) or isinstance(high, str) else 1 if low < high else -1
    return 0


def _edited(again: Sequence[_Part], count: int) -> dict[int, int]:
    """Return the chunks between the copies of a later version, each with the copied chunk that it follows."""
    edited: dict[int, int] = {}
    for part, following in pairwise(again):
        edited.update(dict.fromkeys(range(part.start + part.length, following.start), part.target + part.length - 1))
    first, last = again[0], again[-1]
    after = last.target + last.length
    if after < first.start:
        # The first version goes on after this part, and so does the later one.
        ends = min(count, last.start + last.length + first.start - after)
        edited.update(dict.fromkeys(range(last.start + last.length, ends), after - 1))
    if 0 < first.target <= _MAX_HEAD and first.start - first.target > after - 1:
        edited.update(dict.fromkeys(range(first.start - first.target, first.start), first.target - 1))
    return edited
