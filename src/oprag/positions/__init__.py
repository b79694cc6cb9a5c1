"""Where chunks are in their sources."""

__all__: list[str] = []
