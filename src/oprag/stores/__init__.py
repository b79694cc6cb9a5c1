"""Vector store adapters: read vectors and insertion order, list chunks, write metadata; one file per store."""

from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, register_store

__all__ = ["StoreAdapter", "StoredChunk", "StoredVector", "register_store"]
