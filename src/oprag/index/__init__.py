"""The embedded `DocumentIndex`: splitting, search and its file."""

__all__: list[str] = []
