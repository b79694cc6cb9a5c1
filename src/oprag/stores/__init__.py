"""Vector store adapters: read vectors and insertion order, list chunks, write metadata; one file per store."""

from oprag.positions.insertion_order import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector, register_store

__all__ = ["StoreAdapter", "StoredChunk", "StoredVector", "register_store"]
