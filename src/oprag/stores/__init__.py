"""What oprag does with vector stores beyond searching them: one file a store, for both frameworks."""

from oprag.positions.insertion_order import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector, register_store

__all__ = ["StoreAdapter", "StoredChunk", "StoredVector", "register_store"]
