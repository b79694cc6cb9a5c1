"""LlamaIndex's docstores, for indexes without a vector store and retrievers that read only a docstore."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oprag.positions.fields import DOCUMENT_ID_FIELDS
from oprag.positions.sources import source_name
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, refuse_unknown
from oprag.stores.llama_index_nodes import docstore_rows, listed_nodes, put_rows

__all__ = ["LlamaIndexDocstore", "LlamaIndexSimpleDocstore", "listed_in"]


class LlamaIndexDocstore(StoreAdapter):
    """A docstore over a key-value store, the base of all LlamaIndex docstores."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:  # noqa: ARG002
        """Return nothing: a docstore has no vectors."""
        return {}

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the nodes."""
        if field and not sources:
            return ()
        from llama_index.core.storage.docstore.utils import json_to_doc

        among = set(self.nodes.values())
        rows = _rows_of_sources(self.store, field, sources)
        nodes = (json_to_doc(row) for key, row in rows.items() if not among or key in among)
        return listed_nodes(nodes, field, sources)

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
        rows = self.store._kvstore.get_all(collection=self.store._node_collection)  # noqa: SLF001
        # Copy the keys: another thread may add to the dictionary.
        return [key for key in list(rows) if key in keys]


def listed_in(
    docstore: Any, ids: Iterable[str], field: str = "", sources: Collection[str] = ()
) -> Iterator[StoredChunk]:
    """Yield the nodes with these ids in a docstore that are of some sources; of all sources if `field` is empty."""
    from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore

    if field and isinstance(docstore, KVDocumentStore):
        among = _rows_of_sources(docstore, field, sources) if sources else ()
        ids = [key for key in ids if key in among]
    yield from listed_nodes(docstore.get_nodes([*ids], raise_error=False), field, sources)


def _rows_of_sources(docstore: Any, field: str, sources: Collection[str]) -> dict[str, Any]:
    """Return the stored JSON of the nodes that may be of some sources, by id; of all nodes if `field` is empty.

    Making a node from its JSON takes far longer than reading its source from it.
    """
    from llama_index.core.schema import Document

    rows = docstore._kvstore.get_all(collection=docstore._node_collection)  # noqa: SLF001
    # Ingestion pipelines store documents next to their nodes.
    document = Document.get_type()
    nodes = {key: row for key, row in rows.items() if row["__type__"] != document} or rows
    if not field:
        return nodes
    by_document = field in DOCUMENT_ID_FIELDS

    def source(data: Mapping[str, Any]) -> str | None:
        if by_document:
            return source_name(((data.get("relationships") or {}).get("1") or {}).get("node_id"))
        return source_name((data.get("metadata") or {}).get(field))

    # Old versions stored metadata and relationships in other forms.
    data = ((key, row["__data__"]) for key, row in nodes.items())
    return {key: nodes[key] for key, one in data if "extra_info" in one or source(one) in sources}
