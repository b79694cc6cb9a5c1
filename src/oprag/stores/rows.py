"""The rows of LangChain's FAISS store by source, so that a question need not read the whole store.

Kept as long as the store lives: keys and names of sources, no texts. Keys that were added, deleted or moved are always
noticed. Names that changed under the same key (metadata edited in place) are noticed by reading some again: those of
the result, and those of the next `_IN_TURN` rows in turn. If one differs, or a source has no rows, all are read again.
What remains: in a store of more than `_IN_TURN` rows, a chunk that was moved in place to another existing source may be
missing from it for up to len(store) / `_IN_TURN` listings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from oprag._internal.files.fork_safe import ForkSafeLock
from oprag.positions.source_names import source_name

__all__ = ["Rows", "rows_of"]

_IN_TURN = 2_000
_BLOCK = 256


class Rows:
    """The keys of the documents of a store, with numbers that increase with their rows, and their sources."""

    def __init__(self) -> None:
        self._table: Any = None
        self._keys: list[str] = []
        self._numbers: dict[str, int] = {}
        self._next = count()
        self._fields: dict[str, _Field] = {}

    def update(self, store: Any) -> None:
        """Read what was added, deleted or moved; the store replaces its table when it deletes rows."""
        table = store.index_to_docstore_id
        if table is self._table and len(table) == len(self._keys):
            return
        # Copy the values: another thread may add to the table.
        keys = list(table.values())
        removed, added = _changes(self._keys, keys)
        for key in removed:
            self._numbers.pop(key, None)
        self._numbers.update(zip(added, self._next, strict=False))
        for field, one in self._fields.items():
            one.remove(removed)
            one.add(added, _names(store, field, added))
        self._table, self._keys = table, keys

    def in_sequence(self, keys: Iterable[str]) -> list[str]:
        """Sort keys by row, without those that are missing in the store."""
        return sorted((key for key in keys if key in self._numbers), key=self._numbers.__getitem__)

    def of_sources(self, store: Any, field: str, sources: Collection[str]) -> list[str]:
        """Return the keys of the documents whose metadata name one of these sources, by row."""
        one = self._fields.get(field)
        if one is not None:
            found = one.of_sources(sources)
            keys = [*found, *one.in_turn(self._keys)]
            if all(map(one.keys.get, sources)) and _names(store, field, keys) == [*map(one.names.get, keys)]:
                return self.in_sequence(found)
        one = self._fields[field] = _Field()
        one.add(self._keys, _names(store, field, self._keys))
        return self.in_sequence(one.of_sources(sources))


class _Field:
    """The source names in a metadata key."""

    def __init__(self) -> None:
        self.names: dict[str, str | None] = {}
        self.keys: dict[str | None, set[str]] = {}
        self._turn = 0

    def add(self, keys: Iterable[str], names: Iterable[str | None]) -> None:
        for key, name in zip(keys, names, strict=True):
            self.names[key] = name
            self.keys.setdefault(name, set()).add(key)

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.keys.get(self.names.pop(key, None), set()).discard(key)

    def of_sources(self, sources: Collection[str]) -> set[str]:
        return set().union(*(self.keys.get(source, ()) for source in sources))

    def in_turn(self, keys: Sequence[str]) -> Sequence[str]:
        """Return the next keys to read again."""
        start = self._turn if self._turn < len(keys) else 0
        self._turn = start + _IN_TURN
        return keys[start : self._turn]


def _names(store: Any, field: str, keys: Iterable[str]) -> list[str | None]:
    """Read the source names of documents; None for a document that is missing."""
    found = map(store.docstore._dict.get, keys)  # noqa: SLF001 - a loop of `search` takes longer
    return [None if document is None else source_name(document.metadata.get(field)) for document in found]


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
def rows_of(store: Any) -> Iterator[Rows]:
    """Take the rows of a store out of `_kept` until done, so that an error or a fork amid an update leaves none."""
    with _lock:
        rows = _kept.pop(store, None) or Rows()
        rows.update(store)
        yield rows
        _kept[store] = rows


_lock = ForkSafeLock()
_kept: WeakKeyDictionary[Any, Rows] = WeakKeyDictionary()
