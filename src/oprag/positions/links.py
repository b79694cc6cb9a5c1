"""Reads positions from PREVIOUS/NEXT and PARENT/CHILD links.

Links are a position kind (`PositionKind.LINKS`), and give keys to chunks that lack one of a better kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.chunk import Chunk
from oprag.positions.values import Key

__all__ = ["chain_keys", "linked_keys"]


def chain_keys(chunks: Sequence[Chunk]) -> list[tuple[int, int] | None]:
    """Return a key (run, index in the run) for each chunk that links connect with another chunk.

    Links also connect the two neighbors of a chunk that was not retrieved. A run is in source order. The relative order
    of runs is unknown, so they are numbered by their best-ranked chunk. Links that branch, contradict each other or
    form a cycle give no keys, and neither does an id that two different texts share.
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
    singletons = _singletons(keys, chunks)
    return [None if key is None or key[0] in singletons else key for key in keys]


def linked_keys(chunks: Sequence[Chunk], keys: Sequence[Key | None]) -> Sequence[Key | None]:
    """Return the keys, adding one for each chunk without a key whose links tell its place among the others.

    For example, parents merged from stamped leaves have no stamp. A parent sorts before the chunks inside it, directly
    after those inside its previous chunk, or directly before those inside its next one.
    """
    some_are_missing = None in keys and any(key is not None for key in keys)
    return _Order(chunks, keys).filled() if some_are_missing else keys


class _Order:
    """The known order of the chunks of a source, with the first and last chunk inside each id; grows by insertion."""

    def __init__(self, chunks: Sequence[Chunk], keys: Sequence[Key | None]) -> None:
        self._chunks, self._keys = chunks, keys
        self._parents: dict[str, str] = {}
        self._missing: dict[str, list[int]] = {}
        self._retrieved = {chunk.id for chunk in chunks}
        # The ids of leaf chunks and of their direct parents.
        self._low = {name for chunk in chunks if not chunk.child_ids for name in (chunk.id, chunk.parent_id) if name}
        for index, chunk in enumerate(chunks):
            if chunk.id is not None:
                self._parents.update(dict.fromkeys(chunk.child_ids, chunk.id))
                if chunk.parent_id is not None:
                    self._parents[chunk.id] = chunk.parent_id
                if keys[index] is None:
                    self._missing.setdefault(chunk.id, []).append(index)
        self._waiting = set(self._missing)
        self._line: list[int] = []
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        known = [index for index, key in enumerate(keys) if key is not None]
        for index in sorted(known, key=keys.__getitem__):  # type: ignore[arg-type]
            self._line.append(index)
            for around in self._with_parents(chunks[index].id):
                self._first.setdefault(around, index)
                self._last[around] = index

    def filled(self) -> list[Key | None]:
        """Return the keys, with new keys for the chunks that could be inserted between others."""
        lines = [ids for ids in _Links(self._chunks).lines() if not self._waiting.isdisjoint(ids)]
        # Repeat: an inserted chunk can be the neighbor of another one on another level.
        while sum(self._fill_in(ids) for ids in lines):
            pass
        keys = list(self._keys)
        after, count = _before_all(keys), 0
        for index in self._line:
            key = self._keys[index]
            if key is not None:
                after, count = key, 0
                continue
            for twin in self._missing[self._chunks[index].id or ""]:
                # The 0 keeps these keys from looking consecutive, as if no chunk were missing between them.
                keys[twin] = (*after, count, 0)
            count += 1
        return keys

    def _fill_in(self, ids: Sequence[str]) -> bool:
        """Insert missing chunks from a list of consecutive ids; return whether any was inserted."""
        before = len(self._line)
        is_low = not self._low.isdisjoint(ids)
        near = None
        for name in ids:
            if name in self._waiting and name in self._first:
                place = self._line.index(self._first[name])
                self._insert(name, place, place - 1, is_low=is_low)
            elif name in self._waiting and near is not None:
                place = self._place_after(near, name)
                self._insert(name, place, place, is_low=is_low)
            near = name if name in self._last else near
        near = None
        for name in reversed(ids):
            if name in self._waiting and near is not None:
                place = self._line.index(self._first[near])
                self._insert(name, place, place - 1, is_low=is_low)
            near = name if name in self._first else near
        return len(self._line) > before

    def _place_after(self, near: str, name: str) -> int:
        place = self._line.index(self._last[near]) + 1
        parents = set(self._with_parents(name))
        while place < len(self._line) and self._chunks[self._line[place]].id in parents:
            place += 1
        return place

    def _insert(self, name: str, place: int, beside: int, *, is_low: bool) -> None:
        """Insert a chunk at a place in the order, next to `beside`.

        Skipped for a parent if the ancestors of `beside` are not all known: the parent of a chunk that was not
        retrieved is unknown, so `beside` may be inside another parent.
        """
        if not is_low and 0 <= beside < len(self._line) and self._has_unknown_parents(self._line[beside]):
            return
        index = self._missing[name][0]
        self._line.insert(place, index)
        self._waiting.discard(name)
        for around in self._with_parents(name):
            if around not in self._first or place <= self._line.index(self._first[around]):
                self._first[around] = index
            if around not in self._last or place > self._line.index(self._last[around]):
                self._last[around] = index

    def _has_unknown_parents(self, index: int) -> bool:
        names = self._with_parents(self._chunks[index].id)
        return not names or names[-1] not in self._retrieved

    def _with_parents(self, name: str | None) -> list[str]:
        names: dict[str, None] = {}
        while name is not None and name not in names:
            names[name] = None
            name = self._parents.get(name)
        return list(names)


def _before_all(keys: Sequence[Key | None]) -> Key:
    """Return a key that sorts before all others: keys start with a non-negative number, or with a page (a tuple)."""
    first = next(key[0] for key in keys if key is not None)
    return ((-1,),) if isinstance(first, tuple) else (-1,)


class _Links:
    """The links in both directions, and the ids where they contradict each other."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.following: dict[str, str] = {}
        self.preceding: dict[str, str] = {}
        self.broken: set[str] = set()
        self.texts: dict[str, str] = {}
        documents = {chunk.id: chunk.document_id for chunk in chunks}
        for chunk in chunks:
            if chunk.id is None:
                continue
            if self.texts.setdefault(chunk.id, chunk.text) != chunk.text:
                self.broken.add(chunk.id)
            # Splitters also link the documents of one call, such as the pages of a file, in the order given.
            if documents.get(chunk.previous_id, chunk.document_id) == chunk.document_id:
                self._add(chunk.previous_id, chunk.id)
            if documents.get(chunk.next_id, chunk.document_id) == chunk.document_id:
                self._add(chunk.id, chunk.next_id)

    def _add(self, before: str | None, after: str | None) -> None:
        if before is None or after is None:
            return
        if self.following.setdefault(before, after) != after:
            self.broken.add(before)
        if self.preceding.setdefault(after, before) != before:
            self.broken.add(after)

    def connect(self, name: str) -> bool:
        """Return whether any link starts or ends at this id."""
        return name in self.following or name in self.preceding

    def lines(self) -> Iterator[list[str]]:
        """Yield the ids connected with each retrieved chunk, in order, if they form a line without contradictions."""
        seen: set[str] = set()
        for name in self.texts:
            if name not in seen:
                ids, is_line = self.run_of(name)
                seen.update(ids)
                if is_line:
                    yield ids

    def run_of(self, name: str) -> tuple[list[str], bool]:
        """Return the ids connected with this one, in order, and whether they form a line without contradictions."""
        backward, is_cycle = _follow(name, self.preceding)
        forward = [] if is_cycle else _follow(name, self.following)[0]
        ids = [*reversed(backward), name, *forward]
        return ids, not is_cycle and self.broken.isdisjoint(ids)


def _follow(start: str, links: dict[str, str]) -> tuple[list[str], bool]:
    """Return the ids along the links from `start`, and whether the links form a cycle."""
    path: list[str] = []
    seen = {start}
    name = links.get(start)
    while name is not None and name not in seen:
        seen.add(name)
        path.append(name)
        name = links.get(name)
    return path, name is not None


def _singletons(keys: list[tuple[int, int] | None], chunks: Sequence[Chunk]) -> set[int]:
    """Return the runs with a single retrieved chunk, which tell nothing about its order."""
    members: dict[int, set[str | None]] = {}
    for key, chunk in zip(keys, chunks, strict=True):
        if key is not None:
            members.setdefault(key[0], set()).add(chunk.id)
    return {run for run, ids in members.items() if len(ids) == 1}
