"""Positions from PREVIOUS/NEXT links, as far as they connect (rung 4)."""

from __future__ import annotations

from collections.abc import Sequence

from oprag.chunk import Chunk

__all__ = ["chain_keys"]


def chain_keys(chunks: Sequence[Chunk]) -> list[tuple[int, int] | None]:
    """A key (run, place in the run) for each chunk that its links connect with another one.

    Links that lead through a chunk that was not retrieved connect its two neighbours. Inside a run the order of the
    source holds; how two runs stand to each other is not known, so they are numbered by their best-ranked chunk. Links
    that branch, contradict each other or run in a circle place nothing, nor does an id that stands for two different
    texts.

    Args:
        chunks: The chunks of one source, best first.

    Returns:
        One key a chunk, None for a chunk that is connected with no other.
    """
    links = _Links(chunks)
    places: dict[str, tuple[int, int] | None] = {}
    keys: list[tuple[int, int] | None] = []
    runs = 0
    for chunk in chunks:
        if chunk.id is None or not links.connect(chunk.id):
            keys.append(None)
            continue
        if chunk.id not in places:
            ids, is_line = links.run_of(chunk.id)
            places.update((name, (runs, index) if is_line else None) for index, name in enumerate(ids))
            runs += 1
        keys.append(places[chunk.id])
    alone = _alone(keys, chunks)
    return [None if key is None or key[0] in alone else key for key in keys]


class _Links:
    """The links in both directions, and the ids at which they contradict each other."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.following: dict[str, str] = {}
        self.preceding: dict[str, str] = {}
        self.broken: set[str] = set()
        texts: dict[str, str] = {}
        for chunk in chunks:
            if chunk.id is None:
                continue
            if texts.setdefault(chunk.id, chunk.text) != chunk.text:
                self.broken.add(chunk.id)
            self._add(chunk.previous_id, chunk.id)
            self._add(chunk.id, chunk.next_id)

    def _add(self, before: str | None, after: str | None) -> None:
        if before is None or after is None:
            return
        if self.following.setdefault(before, after) != after:
            self.broken.add(before)
        if self.preceding.setdefault(after, before) != before:
            self.broken.add(after)

    def connect(self, name: str) -> bool:
        """Whether any link leads to or from this id."""
        return name in self.following or name in self.preceding

    def run_of(self, name: str) -> tuple[list[str], bool]:
        """The ids that are connected with this one, in order, and whether they form a plain line."""
        backward, circle = _follow(name, self.preceding)
        forward = [] if circle else _follow(name, self.following)[0]
        ids = [*reversed(backward), name, *forward]
        return ids, not circle and self.broken.isdisjoint(ids)


def _follow(start: str, links: dict[str, str]) -> tuple[list[str], bool]:
    """The ids that the links lead to, and whether they lead back."""
    path: list[str] = []
    seen = {start}
    name = links.get(start)
    while name is not None and name not in seen:
        seen.add(name)
        path.append(name)
        name = links.get(name)
    return path, name is not None


def _alone(keys: list[tuple[int, int] | None], chunks: Sequence[Chunk]) -> set[int]:
    """The runs that hold a single retrieved chunk: nothing is known from them."""
    members: dict[int, set[str | None]] = {}
    for key, chunk in zip(keys, chunks, strict=True):
        if key is not None:
            members.setdefault(key[0], set()).add(chunk.id)
    return {run for run, ids in members.items() if len(ids) == 1}
