"""The steps from retrieved chunks to a context, one per module."""

__all__: list[str] = []
