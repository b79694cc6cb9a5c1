"""LlamaIndex's docstores, for indexes without a vector store and retrievers that read only a docstore."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector
from oprag.stores.llama_index_nodes import docstore_rows, listed_nodes, nodes_in, put_rows

__all__ = ["LlamaIndexDocstore", "LlamaIndexSimpleDocstore"]


class LlamaIndexDocstore(StoreAdapter):
    """A docstore over a key-value store, the base of all LlamaIndex docstores."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:  # noqa: ARG002
        """Return nothing: a docstore has no vectors."""
        return {}

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the nodes."""
        if field and not sources:
            return ()
        among = set(self.nodes.values())
        nodes = nodes_in(self.store)
        return listed_nodes((node for node in nodes if not among or node.node_id in among), field, sources)

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
