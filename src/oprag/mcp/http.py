"""Serves an MCP server over HTTP on this machine, to clients that know a token."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["HOST", "PATH", "serve"]

HOST, PATH = "127.0.0.1", "/mcp"

_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


def serve(server: Any, port: int, token: str) -> None:
    """Serve until interrupted, on the loopback interface, to requests with this bearer token."""
    import uvicorn

    uvicorn.run(with_token(server.streamable_http_app(), token), host=HOST, port=port, log_level="warning")


def with_token(app: _App, token: str) -> _App:
    """Reject requests without the header "Authorization: Bearer TOKEN".

    A page in a browser of this machine can send requests to the loopback interface, but does not know the token.
    """
    expected = f"Bearer {token}".encode()
    body = json.dumps({"error": "the header Authorization: Bearer TOKEN is missing or wrong"}).encode()

    async def checked(scope: _Message, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(given, expected):
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return checked
