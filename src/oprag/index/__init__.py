"""The embedded index of documents."""

__all__: list[str] = []
