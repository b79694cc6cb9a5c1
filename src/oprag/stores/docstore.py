"""LlamaIndex's docstores, for indexes without a vector store and retrievers that read only a docstore."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.positions.fields import DOCUMENT_ID_FIELDS
from oprag.positions.source_names import source_name
from oprag.stores.adapter import StoreAdapter, StoredChunk, refuse_unknown
from oprag.stores.llama_index_nodes import docstore_rows, listed_nodes, put_rows

__all__ = ["LlamaIndexDocstore", "LlamaIndexSimpleDocstore", "listed_in"]


class LlamaIndexDocstore(StoreAdapter):
    """A docstore over a key-value store, the base of all LlamaIndex docstores."""

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the nodes."""
        among = {*self.nodes.values()}
        return (row for row in listed_in(self.store, None, field, sources) if not among or row.key in among)

    def write(self, added: Mapping[str, Mapping[str, object]]) -> None:
        """Add metadata to nodes; atomic for each node, not for the whole call."""
        rows = docstore_rows(self.store, added)
        refuse_unknown(self, added, rows)
        put_rows(self.store, rows)


class LlamaIndexSimpleDocstore(LlamaIndexDocstore):
    """`SimpleDocumentStore`, which is a dictionary."""

    in_insertion_order = True

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by the order of the dictionary."""
        return [key for key in _rows(self.store) if key in keys]


def listed_in(docstore: Any, ids: Iterable[str] | None, field: str, sources: Collection[str]) -> Iterator[StoredChunk]:
    """Yield the nodes with these ids (None: all) of some sources; read from JSON, as making nodes takes far longer."""
    from llama_index.core.schema import Document
    from llama_index.core.storage.docstore.utils import json_to_doc

    stored = _rows(docstore)
    if ids is None:
        # Ingestion pipelines store documents next to their nodes.
        rows = [row for row in stored.values() if row["__type__"] != Document.get_type()] or [*stored.values()]
    else:
        rows = [stored[key] for key in ids if key in stored]
    nodes = (json_to_doc(row) for row in rows if not field or _is_of(row["__data__"], field, sources))
    yield from listed_nodes(nodes, field, sources)


def _rows(docstore: Any) -> dict[str, Any]:
    # Copied: another thread may add to the dictionary.
    return dict(docstore._kvstore.get_all(collection=docstore._node_collection))  # noqa: SLF001


def _is_of(node: Mapping[str, Any], field: str, sources: Collection[str]) -> bool:
    """Return whether a stored node is of one of these sources."""
    document = (node.get("relationships") or {}).get("1") or {}
    value = document.get("node_id") if field in DOCUMENT_ID_FIELDS else (node.get("metadata") or {}).get(field)
    return source_name(value) in sources
