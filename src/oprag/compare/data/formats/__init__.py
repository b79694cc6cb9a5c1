"""One module per format, named after it; its `read` reads a file or folder in that format."""

# If pydantic is missing, this import raises the error that names the extra to install.
from oprag.compare import validation  # noqa: F401

__all__: list[str] = []
