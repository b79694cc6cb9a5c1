"""Reads positions from PREVIOUS/NEXT links (`PositionKind.LINKS`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oprag.chunk import Chunk

__all__ = ["chain_keys"]


def chain_keys(chunks: Sequence[Chunk]) -> list[tuple[int, int] | None]:
    """Return a key (run, index in the run) for each chunk that links connect with another chunk.

    Links also connect the two neighbors of a chunk that was not retrieved. A run is in source order. The relative order
    of runs is unknown, so they are numbered by their best-ranked chunk. Links that branch, contradict each other or
    form a cycle give no keys, and neither does an id that two different texts share.
    """
    texts: dict[str, str] = {}
    following: dict[str, str] = {}
    preceding: dict[str, str] = {}
    broken: set[str] = set()
    for chunk in chunks:
        if chunk.id is None:
            continue
        if texts.setdefault(chunk.id, chunk.text) != chunk.text:
            broken.add(chunk.id)
        for before, after in ((chunk.previous_id, chunk.id), (chunk.id, chunk.next_id)):
            if before is None or after is None:
                continue
            if following.setdefault(before, after) != after or preceding.setdefault(after, before) != before:
                broken.update((before, after))
    places: dict[str | None, tuple[int, int] | None] = {}
    runs = 0
    for name in texts:
        if name not in places:
            run = _run_of(name, following, preceding)
            # A single retrieved chunk tells nothing about its order.
            if broken.isdisjoint(run) and len(texts.keys() & run) > 1:
                places.update((one, (runs, index)) for index, one in enumerate(run))
                runs += 1
            else:
                places.update(dict.fromkeys(run))
    return [places.get(chunk.id) for chunk in chunks]


def _run_of(name: str, following: Mapping[str, str], preceding: Mapping[str, str]) -> list[str]:
    """Return the ids that links connect with this one, in order; empty if they form a cycle."""
    first, seen = name, {name}
    while first in preceding:
        first = preceding[first]
        if first in seen:
            return []
        seen.add(first)
    run = {first: None}
    after = following.get(first)
    while after is not None and after not in run:
        run[after] = None
        after = following.get(after)
    return list(run)
