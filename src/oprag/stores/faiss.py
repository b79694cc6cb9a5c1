"""FAISS: LangChain's `FAISS`, and LlamaIndex's `FaissVectorStore` and `FaissMapVectorStore`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from oprag._internal.files.fork_safe import ForkSafeLock
from oprag.errors import OptionError
from oprag.positions.source_names import source_name
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with, refuse_unknown
from oprag.stores.docstore import listed_in
from oprag.stores.llama_index_nodes import docstore_rows, put_rows, texts_in

__all__ = ["LangChainFaiss", "LlamaIndexFaiss"]

_IN_TURN = 2_000
_BLOCK = 256


class LangChainFaiss(StoreAdapter):
    """LangChain's `FAISS`."""

    by_vector = "similarity_search_with_score_by_vector"
    in_insertion_order = True

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by id; empty if the index does not store exact vectors."""
        requested = set(keys)
        rows = {key: row for row, key in self.store.index_to_docstore_id.items() if key in requested}
        found = [(key, vector, self._document(key)) for key, vector in _exact_vectors(self.store.index, rows).items()]
        return {key: StoredVector(vector, one.page_content) for key, vector, one in found if one is not None}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by row of the index."""
        with _rows_of(self.store) as rows:
            return rows.in_sequence(keys)

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks by row of the index."""
        given = self.search.get("filter")
        if field and sources and isinstance(getattr(self.store.docstore, "_dict", None), dict):
            with _rows_of(self.store) as rows:
                keys = rows.of_sources(self.store, field, sources)
        else:
            # Copy the values: another thread may add to the dictionary.
            keys = list(self.store.index_to_docstore_id.values())
        found = ((key, document) for key in keys if (document := self._document(key)) is not None)
        listed = (StoredChunk(key, document.page_content, document.metadata) for key, document in found)
        if given is not None:
            passes = self.store._create_filter_func(given)  # noqa: SLF001
            listed = (chunk for chunk in listed if passes(chunk.metadata))
        return chunks_with(listed, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the documents by copies, because callers may have references to the originals."""
        documents = getattr(self.store.docstore, "_dict", None)
        if not isinstance(documents, dict):
            # Other docstores would have to delete a document before replacing it; an interruption would lose it.
            kind = type(self.store.docstore).__name__
            raise OptionError(
                f"oprag can write metadata to a FAISS store with an InMemoryDocstore only, got {kind}", kind
            )
        refuse_unknown(self, added, documents)
        changed = {key: {**documents[key].metadata, **more} for key, more in added.items()}
        documents.update({key: documents[key].model_copy(update={"metadata": about}) for key, about in changed.items()})

    def _document(self, key: str) -> Any:
        """Return a document; None if it is missing, for which `search` returns a message as a string."""
        document = self.store.docstore.search(key)
        return None if isinstance(document, str) else document


class LlamaIndexFaiss(StoreAdapter):
    """LlamaIndex's `FaissVectorStore` and `FaissMapVectorStore`, which do not store texts."""

    in_insertion_order = True
    # Its search supports no filters, and ignores `node_ids`.
    filters = ("doc_ids",)
    settings = ("node_ids",)

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of nodes by id; empty if the index does not store exact vectors."""
        rows = self._rows or {}
        vectors = _exact_vectors(self.store.client, {key: rows[key] for key in keys if key in rows})
        texts = texts_in(self.docstore, vectors)
        return {key: StoredVector(vector, texts.get(key)) for key, vector in vectors.items()}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by row of the index."""
        rows = self._rows or {}
        return sorted((key for key in keys if key in rows), key=rows.__getitem__)

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the nodes by row; None if several nodes share a row."""
        ids = None if self._rows is None else self.in_sequence({*self.nodes.values()})
        return None if ids is None else listed_in(self.docstore, ids, field, sources)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Add metadata to nodes in the docstore; the vector store has no metadata."""
        rows = docstore_rows(self.docstore, added)
        refuse_unknown(self, added, rows.keys() & {*self.nodes.values()})
        put_rows(self.docstore, rows)

    @property
    def deletable(self) -> bool:  # type: ignore[override]
        """Whether nodes can be deleted, as from FaissMapVectorStore only."""
        return hasattr(self.store, "_node_id_to_faiss_id_map")

    @property
    def _rows(self) -> Mapping[str, int] | None:
        """The rows of the nodes in the index; None if several nodes share one."""
        # FaissMapVectorStore numbers the nodes itself, after a deletion with numbers that other nodes already have.
        own: Mapping[str, int] | None = getattr(self.store, "_node_id_to_faiss_id_map", None)
        rows = {key: int(row) for row, key in self.nodes.items()} if own is None else own
        return rows if own is None or len({*rows.values()}) == len(rows) else None


# Index types that store exact vectors. Others silently reconstruct approximations.
_EXACT = ("IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexHNSWFlat", "IndexIVFFlat")


def _exact_vectors(index: Any, rows: Mapping[str, int]) -> dict[str, Any]:
    """Return the vectors in these rows by key; none if the index cannot return exact vectors."""
    import faiss

    index = faiss.downcast_index(index)
    inside = faiss.downcast_index(index.index) if type(index).__name__ == "IndexIDMap2" else index
    if type(inside).__name__ not in _EXACT or not rows:
        return {}
    try:
        return dict(zip(rows, index.reconstruct_batch([*rows.values()]), strict=True))
    except RuntimeError:
        # An IVF index without a direct map; building one would change the user's index.
        return {}


class _Rows:
    """The keys of the documents of LangChain's store by row and by source, so that a question need not read all of it.

    Kept as long as the store lives. Keys that were added, deleted or moved are always noticed. Names that changed under
    the same key (metadata edited in place) are noticed by reading some again: those of the result, and those of the
    next `_IN_TURN` rows in turn. If one differs, or a source has no rows, all are read again. What remains: in a store
    of more than `_IN_TURN` rows, a chunk that was moved in place to another existing source may be missing from it for
    up to len(store) / `_IN_TURN` listings.
    """

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
def _rows_of(store: Any) -> Iterator[_Rows]:
    """Take the rows of a store out of `_kept` until done, so that an error or a fork amid an update leaves none."""
    with _lock:
        rows = _kept.pop(store, None) or _Rows()
        rows.update(store)
        yield rows
        _kept[store] = rows


_lock = ForkSafeLock()
_kept: WeakKeyDictionary[Any, _Rows] = WeakKeyDictionary()
