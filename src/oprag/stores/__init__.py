"""One file a store."""

__all__: list[str] = []
