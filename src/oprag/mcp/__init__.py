"""Ordered search and reading for any client of the Model Context Protocol (MCP)."""

from oprag.errors import MissingExtraError

try:
    import mcp  # noqa: F401
except ImportError as error:
    raise MissingExtraError("oprag.mcp", "mcp") from error

from oprag._internal.lazy import set_public_module
from oprag.mcp.server import create_mcp_server

__all__ = ["create_mcp_server"]

set_public_module(__name__, create_mcp_server)
