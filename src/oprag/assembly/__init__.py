"""From retrieved chunks to a context: one step a file."""

__all__: list[str] = []
