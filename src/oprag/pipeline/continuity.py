"""Continuity: prefer candidates whose neighbors in the source are candidates too, by ranks alone.

The nearest relatives are windows of neighbors, which read chunks that nobody retrieved, and dsRAG's relevant segments,
which need scores.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, lru_cache

from oprag.chunk import UNKNOWN_POSITION, Chunk, Drop, PositionKind
from oprag.pipeline.stitch import NUMBERED, STRIPPED, place_in_source

__all__ = ["Values"]

_FAR = 3  # places between chunks that do not count for each other
_PRECISION = 1e9  # values that differ by less than one part of this are equal

_Part = dict[int, int]
"""A part of a source in which it is known how near chunks are: the candidate at each place."""


class Values:
    """The values of candidates.

    With m candidates, the one at index r has `v = ln((m + 1) / (r + 1))` of its own. Its value is
    `v + c * (v of the candidates one place before and after it) + c² * (v of those two places away)` in its source,
    where c is the continuity. A place without a candidate counts 0, and so do all places around a chunk of which it is
    not known what is next to it.
    """

    def __init__(self, chunks: Sequence[Chunk], continuity: float) -> None:
        own = _own_values(len(chunks))
        self._chunks = chunks
        self._parts = _parts(chunks)
        self._values = values = list(own)
        once, twice = continuity, continuity * continuity
        for part in self._parts:
            get = part.get
            for place, index in part.items():
                if (one := get(place + 1)) is not None:
                    values[index] += once * own[one]
                    values[one] += once * own[index]
                if (two := get(place + 2)) is not None:
                    values[index] += twice * own[two]
                    values[two] += twice * own[index]

    @cached_property
    def _index_of(self) -> dict[int, int]:
        return {chunk.rank: index for index, chunk in enumerate(self._chunks)}

    def sorted(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return chunks of highest value first; equal values by rank, and chunks that were no candidates last."""
        keys = {chunk.rank: int(value * _PRECISION) for chunk, value in zip(self._chunks, self._values, strict=True)}
        # Sorting is stable, also in reverse.
        return sorted(chunks, key=lambda chunk: keys.get(chunk.rank, -1), reverse=True)

    def lifted(self, kept: Sequence[Chunk]) -> dict[int, tuple[int, ...]]:
        """Return, for each kept candidate that is not among the first by rank, the ranks of those that lifted it."""
        index_of = self._index_of
        indices = sorted(index_of[chunk.rank] for chunk in kept if chunk.neighbor_of is None and chunk.rank in index_of)
        above = {index for index in indices if index >= len(indices)}
        ranks = list(index_of)
        found: dict[int, tuple[int, ...]] = {}
        for part in self._parts:
            for place, index in part.items():
                if index in above:
                    near = (part.get(place + distance) for distance in (-1, 1, -2, 2))
                    found[ranks[index]] = tuple(ranks[one] for one in near if one is not None)
        return dict(sorted(found.items()))

    def displaced_by(self, drop: Drop, lifted: Sequence[int]) -> list[int]:
        """Return the ranks of the lifted chunks of higher value, for a chunk of better rank that a limit dropped."""
        index = self._index_of.get(drop.chunk.rank)
        if index is None or drop.reason not in ("k", "token_budget"):
            return []
        others = ((rank, self._index_of[rank]) for rank in lifted)
        return [rank for rank, other in others if other > index and self._values[other] >= self._values[index]]


@lru_cache(maxsize=64)
def _own_values(count: int) -> tuple[float, ...]:
    return tuple(math.log((count + 1) / number) for number in range(1, count + 1))


def _parts(chunks: Sequence[Chunk]) -> list[_Part]:
    """Return the candidates of each part of a source in which it is known how near chunks are."""
    parts: defaultdict[object, _Part] = defaultdict(dict)
    spans: defaultdict[object, list[tuple[int, int, int]]] = defaultdict(list)
    numbered = NUMBERED  # local, since these lookups are slow in a loop
    for index, chunk in enumerate(chunks):
        source, place = chunk.source, chunk.place
        key, kind, _ = chunk.position or UNKNOWN_POSITION
        if source is None or not key:
            continue
        if place is not None and place.number >= 0:
            part, number = parts[source], place.number
        elif kind in numbered and type(number := key[-1]) is int:
            part = parts[source, key[:-1]]
        elif (span := chunk.span or place_in_source(chunk)) is not None:
            start, end, page = span
            spans[source if page is None else (source, page)].append((start, end, index))
            continue
        elif kind is PositionKind.KEY and type(number := key[-1][-1]) is int:
            part = parts[source, key[:-1]]
        else:
            continue
        part.setdefault(number, index)
    return [*parts.values(), *(_part_of_spans(of_part, chunks) for of_part in spans.values())]


def _part_of_spans(spans: list[tuple[int, int, int]], chunks: Sequence[Chunk]) -> _Part:
    """Number chunks by their offsets: those that touch, overlap or are linked are one place apart."""
    part: _Part = {}
    place = reached = 0
    before: str | None = None
    for start, end, index in sorted(spans):
        chunk = chunks[index]
        if start <= reached + STRIPPED:
            place, reached = place + 1, max(reached, end)
        else:
            place, reached = place + (1 if before is not None and chunk.previous_id == before else _FAR), end
        part[place], before = index, chunk.id
    return part
