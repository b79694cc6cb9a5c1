"""The embedded `DocumentIndex`: splitting and search."""

__all__: list[str] = []
