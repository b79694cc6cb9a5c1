"""Positions from PREVIOUS/NEXT links, as far as they connect (rung 4)."""

from __future__ import annotations

from collections.abc import Sequence

from oprag.chunk import Chunk

__all__ = ["chain_keys"]


def chain_keys(chunks: Sequence[Chunk]) -> list[tuple[int, int] | None]:
    """A key (run, place in the run) for each chunk that its links connect with another one.

    Links that lead through a chunk that was not retrieved connect its two neighbours. Inside a run the order of the source
    holds; how two runs stand to each other is not known, so they are numbered by their best-ranked chunk. Links that
    branch, contradict each other or run in a circle place nothing, nor does an id that stands for two different texts.

    Args:
        chunks: The chunks of one source, best first.

    Returns:
        One key a chunk, None for a chunk that is connected with no other.
    """
    following, preceding, broken = _links(chunks)
    places: dict[str, tuple[int, int] | None] = {}
    run_of_head: dict[str, int] = {}
    keys: list[tuple[int, int] | None] = []
    for chunk in chunks:
        if chunk.id is None or (chunk.id not in following and chunk.id not in preceding):
            keys.append(None)
            continue
        if chunk.id not in places:
            _walk(chunk.id, following, preceding, broken, places, run_of_head)
        keys.append(places[chunk.id])
    alone = _alone(keys, chunks)
    return [None if key is None or key[0] in alone else key for key in keys]


def _links(chunks: Sequence[Chunk]) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """The links in both directions, and the ids at which they contradict each other."""
    following: dict[str, str] = {}
    preceding: dict[str, str] = {}
    broken: set[str] = set()
    texts: dict[str, str] = {}
    for chunk in chunks:
        if chunk.id is None:
            continue
        if texts.setdefault(chunk.id, chunk.text) != chunk.text:
            broken.add(chunk.id)
        for before, after in ((chunk.previous_id, chunk.id), (chunk.id, chunk.next_id)):
            if before is None or after is None:
                continue
            if following.setdefault(before, after) != after:
                broken.add(before)
            if preceding.setdefault(after, before) != before:
                broken.add(after)
    return following, preceding, broken


def _walk(
    start: str,
    following: dict[str, str],
    preceding: dict[str, str],
    broken: set[str],
    places: dict[str, tuple[int, int] | None],
    run_of_head: dict[str, int],
) -> None:
    """Place every id of the run that holds `start`; None for all of them where the run is not a plain line."""
    backward, circle = _follow(start, preceding)
    forward = [] if circle else _follow(start, following)[0]
    ids = [*reversed(backward), start, *forward]
    if circle or not broken.isdisjoint(ids):
        places.update(dict.fromkeys(ids))
        return
    run = run_of_head.setdefault(ids[0], len(run_of_head))
    places.update((name, (run, index)) for index, name in enumerate(ids))


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
