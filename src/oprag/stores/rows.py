"""The rows of a large in-memory store by source, so that a question need not read the whole store.

Kept as long as the store lives: keys and names of sources, no texts. Keys that were added, deleted or moved are always
noticed. Names that changed under the same key (metadata edited in place, a replaced document) are noticed by reading
some again: those of the result, of keys that were recently asked for or returned, of the newest rows, and of the next
`_IN_TURN` rows in turn. If one differs, or a source has no rows, all are read again. What remains: in a store of more
than `_IN_TURN` rows, a chunk that no recent question touched and that was moved in place to another existing source
may be missing from it for up to len(store) / `_IN_TURN` listings.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from oprag.files.fork_safe import ForkSafeLock
from oprag.positions.sources import source_name

__all__ = ["forget_rows", "keys_in_sequence", "keys_of_sources"]

_IN_TURN = 2_000
_NEWEST = 1_000  # a deleted chunk that is added again is among the newest
_WATCHED = 1_000
_BLOCK = 256

Names = Callable[[Sequence[str]], Iterable[Any]]


def keys_in_sequence(store: Any, table: Mapping[int, str], keys: Collection[str]) -> list[str]:
    """Sort keys by row, without those that are missing in the store.

    Args:
        store: The store.
        table: The key of each row, in order. The store replaces the table when it deletes rows.
        keys: The keys to sort.
    """
    with _rows_of(store, table) as rows:
        return rows.in_sequence(keys)


def keys_of_sources(
    store: Any, table: Mapping[int, str], field: str, sources: Collection[str], names: Names
) -> list[str]:
    """Return the keys of all chunks of some sources, by row.

    Args:
        store: The store.
        table: See `keys_in_sequence`.
        field: The metadata key that contains the source name.
        sources: The names of the sources.
        names: Reads the values of that metadata key for some keys; None for a key that is missing in the store.
    """
    with _rows_of(store, table) as rows:
        return rows.of_sources(field, set(sources), names)


def forget_rows(store: Any) -> None:
    """Read everything again at the next call, because metadata of the store were changed."""
    with _lock:
        _kept.pop(id(store), None)


class _Field:
    """The source names in a metadata key, by number of the chunk, and the numbers of each source."""

    def __init__(self) -> None:
        self.names: list[str | None] = []
        self.numbers: dict[str, list[int]] = {}
        self.turn = 0


class _Rows:
    """The keys of a store; a chunk has a number that never changes and increases with its row, with gaps."""

    def __init__(self) -> None:
        self.table: Mapping[int, str] = {}
        self.current: list[str] = []
        self.keys: list[str | None] = []  # by number; None if deleted
        self.numbers: dict[str, int] = {}
        self.fields: dict[str, _Field] = {}
        self.watched: dict[str, None] = {}

    @property
    def repeated(self) -> bool:
        """Whether several rows have the same key."""
        return len(self.numbers) != len(self.current)

    def updated(self, table: Mapping[int, str]) -> _Rows:
        """Return the rows of the table as it is now; only changes are read."""
        if table is self.table and len(table) == len(self.current):
            return self
        # Copy the values: another thread may add to the table.
        current = list(table.values())
        removed, added = _changes(self.current, current)
        if self.repeated or len(self.keys) + len(added) > 2 * len(current) + _BLOCK:
            return _Rows().updated(table)
        self._remove(removed)
        self.numbers.update(zip(added, range(len(self.keys), len(self.keys) + len(added)), strict=True))
        self.keys += added
        self.table, self.current = table, current
        return self

    def in_sequence(self, keys: Collection[str]) -> list[str]:
        if self.repeated:
            return [key for key in self.current if key in keys]
        found = sorted((key for key in keys if key in self.numbers), key=self.numbers.__getitem__)
        self._watch(found)
        return found

    def of_sources(self, field: str, sources: Collection[str], names: Names) -> list[str]:
        one = self.fields.get(field)
        if one is not None:
            self._read(one, names)
            found = self._found(one, sources)
            if all(source in one.numbers for source in sources) and self._confirmed(one, found, names):
                return found
        one = self.fields[field] = _Field()
        self._read(one, names)
        return self._found(one, sources)

    def _found(self, one: _Field, sources: Collection[str]) -> list[str]:
        numbers = sorted(number for source in sources for number in one.numbers.get(source, ()))
        found = [key for number in numbers if (key := self.keys[number]) is not None]
        self._watch(found)
        return found

    def _watch(self, keys: Sequence[str]) -> None:
        self.watched.update(dict.fromkeys(keys[-_WATCHED:]))
        for key in list(islice(self.watched, max(0, len(self.watched) - _WATCHED))):
            del self.watched[key]

    def _confirmed(self, one: _Field, found: Sequence[str], names: Names) -> bool:
        """Return whether the names of the found chunks, and of some others, are as they were read."""
        numbers = [self.numbers[key] for key in (*found, *self.watched) if key in self.numbers]
        keys: list[str | None] = [self.keys[number] for number in numbers]
        known = [one.names[number] for number in numbers]
        turn = one.turn if one.turn < len(self.keys) else 0
        one.turn = turn + _IN_TURN
        for part in (slice(-_NEWEST, None), slice(turn, one.turn)):
            keys += self.keys[part]
            known += one.names[part]
        if None in keys:
            known = [name for key, name in zip(keys, known, strict=True) if key is not None]
        now = names([key for key in keys if key is not None])
        # Comparing by identity first is faster.
        pairs = zip(known, now, strict=True)
        return [name if name is value else source_name(value) for name, value in pairs] == known

    def _read(self, one: _Field, names: Names) -> None:
        """Read the names of the chunks that were added since the last call."""
        first = len(one.names)
        keys = self.keys[first:]
        found = iter(names([key for key in keys if key is not None]))
        one.names += [None if key is None else source_name(next(found)) for key in keys]
        for number, name in enumerate(one.names[first:], first):
            if name is not None:
                one.numbers.setdefault(name, []).append(number)

    def _remove(self, keys: Iterable[str]) -> None:
        numbers = {self.numbers.pop(key) for key in keys}
        for number in numbers:
            self.keys[number] = None
        for one in self.fields.values():
            affected = {one.names[number] for number in numbers if number < len(one.names)}
            for name in affected:
                left = [number for number in one.numbers.pop(name or "", ()) if number not in numbers]
                if name is not None and left:
                    one.numbers[name] = left


def _changes(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """Return the keys to remove from `old` and those to append then, to get `new`; a moved key is in both."""
    removed, at, now = [], 0, 0
    while at < len(old):
        while at < len(old) and old[at : at + _BLOCK] == new[now : now + _BLOCK]:
            at, now = at + _BLOCK, now + _BLOCK
        while at < len(old) and now < len(new) and old[at] == new[now]:
            at, now = at + 1, now + 1
        while at < len(old) and (now >= len(new) or old[at] != new[now]):
            removed.append(old[at])
            at += 1
    return removed, new[now:]


@contextmanager
def _rows_of(store: Any, table: Mapping[int, str]) -> Iterator[_Rows]:
    """Take the rows of a store out of `_kept` until done, so that an error or a fork amid an update leaves none."""
    at = id(store)
    with _lock:
        rows = _kept.pop(at, (None, _Rows()))[1].updated(table)
        yield rows
        # The callback takes no lock, which may be held when a store is collected; it runs before the id is reused.
        _kept[at] = weakref.ref(store, lambda _: _kept.pop(at, None)), rows


_lock = ForkSafeLock()
_kept: dict[int, tuple[Any, _Rows]] = {}
