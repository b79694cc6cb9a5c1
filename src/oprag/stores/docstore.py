"""LlamaIndex's docstores, for indexes without a vector store and retrievers that read only a docstore."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import methodcaller
from typing import Any

from oprag.positions.fields import DOCUMENT_ID_FIELDS
from oprag.positions.sources import source_name
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector
from oprag.stores.llama_index_nodes import docstore_rows, listed_nodes, put_rows

__all__ = ["LlamaIndexDocstore", "LlamaIndexSimpleDocstore", "rows_of_sources"]


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
        rows = rows_of_sources(self.store, field, sources)
        nodes = (json_to_doc(row) for key, row in rows.items() if not among or key in among)
        return listed_nodes(nodes, field, sources)

    def write(self, added: Mapping[str, Mapping[str, object]]) -> None:
        """Add metadata to nodes; atomic for each node, not for the whole call."""
        rows = docstore_rows(self.store, added)
        self.refuse_unknown(added, rows)
        put_rows(self.store, rows)


class LlamaIndexSimpleDocstore(LlamaIndexDocstore):
    """`SimpleDocumentStore`, which is a dictionary."""

    in_insertion_order = True

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort ids by the order of the dictionary."""
        rows = self.store._kvstore.get_all(collection=self.store._node_collection)  # noqa: SLF001
        # Copy the keys: another thread may add to the dictionary.
        return [key for key in list(rows) if key in keys]


def rows_of_sources(docstore: Any, field: str, sources: Collection[str]) -> dict[str, Any]:
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
    sources = set(sources)
    read = _source_node if field in DOCUMENT_ID_FIELDS else methodcaller("get", field)
    about = "relationships" if field in DOCUMENT_ID_FIELDS else "metadata"
    data = ((key, row["__data__"]) for key, row in nodes.items())
    # Old versions stored metadata and relationships in other forms.
    return {
        key: nodes[key]
        for key, one in data
        if "extra_info" in one or source_name(read(one.get(about) or {})) in sources
    }


def _source_node(relationships: Mapping[str, Any]) -> Any:
    return (relationships.get("1") or {}).get("node_id")
