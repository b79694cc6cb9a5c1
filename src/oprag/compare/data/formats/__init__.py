"""One module a format: its name is that of the format, and its `read` takes in a file or folder of it."""

__all__: list[str] = []
