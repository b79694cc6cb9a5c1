"""Copies of chunks in a listing: a source, or a part of it, that was added to a store again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oprag.chunk import Chunk
from oprag.positions.fields import NUMBERING_FIELD, READ_FIELDS, SOURCE_FIELDS, STAMP_FIELD
from oprag.positions.overlaps import overlap_of
from oprag.positions.values import ordinal

__all__ = ["Copies", "copies_of"]

# Minimum number of different texts that occur again in a row amid a listing; fewer may come from a source that repeats
# itself.
_MIN_REPEATED = 5
# Minimum characters of a text that occurs again at the end of a listing; a shorter one may be a refrain.
_MIN_LENGTH = 100
_MAX_HEAD = 3  # edited chunks at the start of a second version

_PLACES = READ_FIELDS.difference(SOURCE_FIELDS)


class Copies(NamedTuple):
    """The chunks of a listing that were added again.

    Attributes:
        of: The index of the first occurrence, by the index of each copy.
        edited: The index of the chunk that comes before it, by the index of each chunk of a later version that is not
            a copy.
    """

    of: dict[int, int]
    edited: dict[int, int]


def copies_of(chunks: Sequence[Chunk]) -> Copies | None:
    """Return the copies in a listing in the sequence of its store; None if there are none."""
    names = [_identity(chunk) for chunk in chunks]
    first: dict[Any, int] = {}
    for index, name in enumerate(names):
        first.setdefault(name, index)
    if len(first) == len(names):
        return None
    of: dict[int, int] = {}
    parts: list[tuple[int, int, int]] = []
    index = 0
    while index < len(names):
        target = first[names[index]]
        length = 0
        # A copy of a copy is one of the first occurrence, too.
        while index + length < len(names) and target + length < index:
            if names[index + length] != names[target + length]:
                break
            length += 1
        if target < index and _is_again(chunks, names, index, length):
            parts.append((index, length, target))
            of.update((index + one, of.get(target + one, target + one)) for one in range(length))
            index += length
        else:
            index += 1
    return Copies(of, _edited(parts, len(names), of)) if of else None


def _identity(chunk: Chunk) -> Any:
    """Return what two copies of a chunk share: the text, and what tells its place."""
    metadata = chunk.metadata
    ours = metadata.get(NUMBERING_FIELD) is not None
    places = [
        (name, str(metadata[name]) if (number := ordinal(metadata[name])) is None else number)
        for name in metadata.keys() & _PLACES
        # Each call of a stamping step begins at 0.
        if not (ours and name == STAMP_FIELD)
    ]
    return chunk.text, tuple(sorted(places, key=lambda one: one[0])), chunk.span


def _is_again(chunks: Sequence[Chunk], names: Sequence[Any], index: int, length: int) -> bool:
    """Return whether a part that repeats an earlier one was added again, instead of being a repetition in the text."""
    if len(set(names[index : index + length])) >= _MIN_REPEATED:
        return True
    at_end = index + length == len(names)
    mine, before = names[index][1], names[index - 1][1]
    if mine and mine == before:
        # A page that repeats itself.
        return False
    long = bool(mine) or all(len(chunk.text) >= _MIN_LENGTH for chunk in chunks[index : index + length])
    linked = chunks[index].previous_id is not None and chunks[index].previous_id == chunks[index - 1].id
    return at_end and long and not linked and not overlap_of(chunks[index - 1].text, chunks[index].text)


def _edited(parts: Sequence[tuple[int, int, int]], count: int, of: dict[int, int]) -> dict[int, int]:
    """Return the chunks between the copies of a later version, each with the copied chunk that it follows."""
    edited: dict[int, int] = {}
    for number, (start, length, target) in enumerate(parts):
        end, after = start + length, target + length
        following = parts[number + 1] if number + 1 < len(parts) else None
        if following is not None and following[2] >= after:
            edited.update(dict.fromkeys(range(end, following[0]), after - 1))
        elif following is None and after < parts[0][0]:
            # The first version goes on after this part, and so does the later one.
            edited.update(dict.fromkeys(range(end, count), after - 1))
    start, length, target = parts[0]
    if 0 < target <= _MAX_HEAD and length >= _MIN_REPEATED and start - target > target + length - 1:
        edited.update(dict.fromkeys(range(start - target, start), target - 1))
    return {index: of.get(after, after) for index, after in edited.items() if index not in of}
