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
    """A server on the loopback interface that stops when nothing holds it any more.

    Attributes:
        address: The server's URL, without a path.
        key: The API key that requests need.
    """

    address: str
    key: str = field(repr=False)
    _server: Any = field(repr=False)


def start_llama_server(parameters: Any) -> LlamaServer:
    """Start a server, and wait until it takes work. One that is dropped before that deadlocks.

    Args:
        parameters: The `xllamacpp.CommonParams`. Without API keys of their own they get a random one.

    Raises:
        RuntimeError: It cannot be started, or the model file cannot be loaded.
    """
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
