"""Finds, stamps, locates and checks the positions of chunks in their sources."""

__all__: list[str] = []
