"""Vectors: embedders and their identity, the vector cache and cosine similarity."""

__all__: list[str] = []
