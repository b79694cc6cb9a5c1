"""LlamaIndex's docstores, for indexes that have no vector store, and for retrievers that read a docstore alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from oprag.positions.insertion_order import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector
from oprag.stores.llama_index_nodes import docstore_rows, listed_nodes, nodes_in, put_rows

__all__ = ["LlamaIndexDocstore", "LlamaIndexSimpleDocstore"]


class LlamaIndexDocstore(StoreAdapter):
    """A docstore over a key-value store, as all of LlamaIndex are."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:  # noqa: ARG002
        """None: a docstore has no vectors."""
        return {}

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """The nodes."""
        if field and not sources:
            return ()
        return listed_nodes(nodes_in(self.store), field, sources)

    def write(self, added: Mapping[str, Mapping[str, object]]) -> None:
        """Add metadata to nodes; each of them gets all that is added, or nothing where the call is interrupted."""
        rows = docstore_rows(self.store, added)
        self.refuse_unknown(added, rows)
        put_rows(self.store, rows)


class LlamaIndexSimpleDocstore(LlamaIndexDocstore):
    """`SimpleDocumentStore`, which is a dictionary."""

    in_insertion_order = True
