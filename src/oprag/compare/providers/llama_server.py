"""A llama.cpp server in this process."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

__all__ = ["LlamaServer", "start_llama_server"]

_SECONDS = 60  # for reading a request or writing a piece of a reply, so that an idle connection is closed


@dataclass(frozen=True, eq=False)
class LlamaServer:
    """A server on the loopback interface, with its URL and its API key, that stops when nothing holds it any more."""

    address: str
    key: str = field(repr=False)
    _server: Any = field(repr=False)


def start_llama_server(parameters: Any) -> LlamaServer:
    """Start a server with these `xllamacpp.CommonParams`, and wait until it works: dropped before, it deadlocks."""
    import xllamacpp

    # Other users of the machine and pages in a browser reach the loopback interface too.
    parameters.api_keys = parameters.api_keys or [secrets.token_urlsafe(32)]
    parameters.timeout_read = parameters.timeout_write = _SECONDS
    # A reply ends at the end of the window at the latest.
    parameters.ctx_shift = False
    native = xllamacpp.Server(parameters)
    server = LlamaServer(native.listening_address, parameters.api_keys[0], native)
    connection = HTTPConnection(server.address.removeprefix("http://"))
    try:
        # It answers what it knows without its queue at once; of the slots the queue tells, from its first turn on.
        connection.request("GET", "/slots", headers={"Authorization": f"Bearer {server.key}"})
        connection.getresponse().read()
    finally:
        connection.close()
    return server
