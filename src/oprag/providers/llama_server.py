"""A llama.cpp server in this process."""

from __future__ import annotations

from http.client import HTTPConnection
from typing import Any

__all__ = ["start_llama_server"]


def start_llama_server(parameters: Any) -> Any:
    """A server on the loopback interface that stops when nothing holds it any more.

    Args:
        parameters: The `xllamacpp.CommonParams`.

    Returns:
        The `xllamacpp.Server`, which takes work. One that is let go before it does waits for itself for ever.

    Raises:
        RuntimeError: It cannot be started, or the model file cannot be loaded.
    """
    import xllamacpp

    server = xllamacpp.Server(parameters)
    connection = HTTPConnection(server.listening_address.removeprefix("http://"))
    try:
        # It answers what it knows without its queue at once; of the slots the queue tells, from its first turn on.
        connection.request("GET", "/slots")
        connection.getresponse().read()
    finally:
        connection.close()
    return server
