"""A llama.cpp server in this process."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from oprag.compare.meter import usable_cores
from oprag.errors import ModelError

__all__ = ["LlamaServer", "llama_parameters", "start_llama_server"]

_TIMEOUT = 60  # seconds to read a request or write a part of a reply; idle connections are closed


@dataclass(frozen=True, eq=False)
class LlamaServer:
    """A server on the loopback interface, with its URL and API key; stops when it is garbage-collected."""

    address: str
    key: str = field(repr=False)
    _file: str
    _native: Any = field(repr=False)

    def request(self, route: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request, a GET if it has no body, and return the JSON reply."""
        connection = HTTPConnection(self.address.removeprefix("http://"))
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        try:
            connection.request("POST" if body else "GET", route, json.dumps(body) if body else None, headers)
            reply = json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise ModelError(f"the server of {self._file} does not answer: {error}", self._file) from error
        finally:
            connection.close()
        if "error" in reply:
            raise ModelError(
                f"the server of {self._file} returned an error: {reply['error'].get('message')}", self._file
            )
        return reply


def llama_parameters(path: Path, window: int, threads: int | None = None) -> Any:
    """`xllamacpp.CommonParams` of a server for a GGUF file, on a free port; window 0 means that of the model."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.port = 0
    parameters.verbosity = -1
    # Threads synchronize at every layer: with one per core, any other process slows them down many times.
    threads = threads or max(1, int(usable_cores()) - 1)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    return parameters


def start_llama_server(parameters: Any) -> LlamaServer:
    """Start a server and wait until it is ready: destroying it earlier deadlocks."""
    import xllamacpp

    # Require a key, since other users of the machine and web pages in a browser can also reach the loopback interface.
    parameters.api_keys = parameters.api_keys or [secrets.token_urlsafe(32)]
    parameters.timeout_read = parameters.timeout_write = _TIMEOUT
    # End a reply when the window is full instead of dropping the start of the prompt.
    parameters.ctx_shift = False
    path = Path(parameters.model.path)
    try:
        native = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ModelError(f"{path} cannot be loaded as a GGUF model: {error}", path) from error
    server = LlamaServer(native.listening_address, parameters.api_keys[0], path.name, native)
    # Most routes reply before the task queue runs; this one waits for the queue, so then the server is ready.
    server.request("/slots")
    return server
