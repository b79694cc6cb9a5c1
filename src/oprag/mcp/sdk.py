"""The official SDK for Python, majors 1 and 2, which name and configure the same things differently."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

__all__ = ["READ_ONLY", "CallContext", "CallToolResult", "Server", "ToolError", "result", "session_of"]

try:
    # Major 2. mypy sees one of the two majors.
    _server, _exceptions = import_module("mcp.server.mcpserver"), import_module("mcp.server.mcpserver.exceptions")
    Server: Any = _server.MCPServer
except ModuleNotFoundError:
    _server, _exceptions = import_module("mcp.server.fastmcp"), import_module("mcp.server.fastmcp.exceptions")
    Server = _server.FastMCP
CallContext: Any = _server.Context
"""The parameter of a tool by which it reports progress."""
ToolError: type[Exception] = _exceptions.ToolError
"""An error that the model reads."""

_types = import_module("mcp.types")
CallToolResult: Any = _types.CallToolResult
READ_ONLY: Any = _types.ToolAnnotations(
    readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
)
"""The annotations of a tool that changes nothing and reaches nothing but the store."""
_SESSION_HEADER = "mcp-session-id"


def result(text: str, structured: Mapping[str, Any]) -> Any:
    """The result of a tool: text for the model, and the same as data."""
    content = [{"type": "text", "text": text}]
    return CallToolResult.model_validate({"content": content, "structuredContent": structured})


def session_of(context: Any) -> str | None:
    """The session of a call: its id over HTTP, "" for the only one of another transport, None for a call without one.

    HTTP has no sessions if the server is stateless, and from protocol version 2026-07-28 on.
    """
    request = context.request_context.request
    if request is None:
        return ""
    session: str | None = request.headers.get(_SESSION_HEADER)
    return session
