"""A llama.cpp server in this process."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from oprag.compare.cores import usable_cores
from oprag.errors import ModelError

__all__ = ["LlamaServer", "llama_parameters", "start_llama_server"]

_SECONDS = 60  # for reading a request or writing a piece of a reply, so that an idle connection is closed


@dataclass(frozen=True, eq=False)
class LlamaServer:
    """A server on the loopback interface, with its URL and its API key, that stops when nothing holds it any more."""

    address: str
    key: str = field(repr=False)
    _file: str
    _native: Any = field(repr=False)

    def request(self, route: str, body: Mapping[str, Any] | None = None) -> Any:
        """The reply as JSON; without a body the request is a GET."""
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
            raise ModelError(f"the server of {self._file} refused: {reply['error'].get('message')}", self._file)
        return reply


def llama_parameters(path: Path, window: int, threads: int | None = None) -> Any:
    """`xllamacpp.CommonParams` of a server for a GGUF file, which takes a free port; window 0 is that of the model."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.port = 0
    parameters.verbosity = -1
    # Threads wait for each other at every layer: with one a core, whatever else runs makes them many times slower.
    threads = threads or max(1, int(usable_cores()) - 1)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    return parameters


def start_llama_server(parameters: Any) -> LlamaServer:
    """Start a server with these parameters, and wait until it works: dropped before, it deadlocks."""
    import xllamacpp

    # Other users of the machine and pages in a browser reach the loopback interface too.
    parameters.api_keys = parameters.api_keys or [secrets.token_urlsafe(32)]
    parameters.timeout_read = parameters.timeout_write = _SECONDS
    # A reply ends at the end of the window at the latest.
    parameters.ctx_shift = False
    path = Path(parameters.model.path)
    try:
        native = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ModelError(f"{path} cannot be loaded as a GGUF model: {error}", path) from error
    server = LlamaServer(native.listening_address, parameters.api_keys[0], path.name, native)
    # It answers what it knows without its queue at once; of the slots the queue tells, from its first turn on.
    server.request("/slots")
    return server
