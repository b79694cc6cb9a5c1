"""Clients of an MCP server, with either major of the official SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import mcp


@dataclass(frozen=True)
class Result:
    """What a tool returned."""

    text: str
    data: Mapping[str, Any]
    failed: bool

    @property
    def documents(self) -> list[dict[str, Any]]:
        return list(self.data["documents"])

    @property
    def contents(self) -> list[str]:
        return [document["page_content"] for document in self.documents]


class Client:
    """A connected client."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The tools as the protocol writes them, by name."""
        found = (await self.session.list_tools()).tools
        return {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in found}

    async def call(self, name: str, /, **arguments: Any) -> Result:
        return result_of(await self.session.call_tool(name, arguments))


def result_of(returned: Any) -> Result:
    data = returned.model_dump(by_alias=True)
    return Result(data["content"][0]["text"], data.get("structuredContent") or {}, bool(data.get("isError")))


@asynccontextmanager
async def connected(server: Any) -> AsyncIterator[Client]:
    """A client in the same process."""
    in_memory: Any
    if hasattr(mcp, "Client"):
        in_memory = mcp.Client(server)
    else:
        # Major 1; mypy sees one of the two majors.
        memory: Any = import_module("mcp.shared.memory")
        in_memory = memory.create_connected_server_and_client_session(server._mcp_server)
    async with in_memory as session:
        yield Client(session)


@asynccontextmanager
async def over_http(address: str, token: str) -> AsyncIterator[Client]:
    """A client that connects to an address, with a session of its own."""
    sdk: Any = import_module("mcp.client.streamable_http")
    # Each major has an HTTP client of its own.
    http: Any = import_module("httpx2" if hasattr(mcp, "Client") else "httpx")
    async with (
        http.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as connection,
        sdk.streamable_http_client(address, http_client=connection) as streams,
        mcp.ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        yield Client(session)
