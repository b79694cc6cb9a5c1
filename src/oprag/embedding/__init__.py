"""Vectors: embedders, their identity, the cache, cosine similarity."""

__all__: list[str] = []
