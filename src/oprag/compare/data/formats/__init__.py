"""One module a format: its name is that of the format, and its `read` takes in a file or folder of it."""

# Names the extra where pydantic, which formats import, is missing.
from oprag.compare import validation  # noqa: F401

__all__: list[str] = []
