"""Vectors out of a FAISS index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["exact_vectors"]

# Indexes that hold vectors as they were given. Others reconstruct something else, without saying so.
_EXACT = ("IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexHNSWFlat", "IndexIVFFlat")


def exact_vectors(index: Any, rows: Sequence[int]) -> Any:
    """The vectors of these rows, of shape (rows, dimension); None where the index cannot give them as they were.

    Args:
        index: A FAISS index.
        rows: What the index calls the vectors: their places, or the numbers that they were given.
    """
    import faiss

    index = faiss.downcast_index(index)
    inside = faiss.downcast_index(index.index) if type(index).__name__ == "IndexIDMap2" else index
    if type(inside).__name__ not in _EXACT or not rows:
        return None
    try:
        return index.reconstruct_batch(list(rows))
    except RuntimeError:
        # An inverted file without a direct map: making one would change the user's index.
        return None
