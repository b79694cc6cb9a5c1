"""A llama.cpp server for one model file, in this process, and what is asked of it."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from oprag.compare.providers.llama_server import start_llama_server
from oprag.errors import MissingExtraError, ModelError

__all__ = ["BLOCK", "GgufServer", "check_gguf"]

BLOCK = 512  # tokens that are read at once
_MAGIC = b"GGUF"


def check_gguf(path: Path) -> None:
    """Refuse what cannot be a model file, without loading it.

    Raises:
        MissingExtraError: The extra `likelihood` is not installed.
        ModelError: There is no such file, or it does not begin as a GGUF file does.
    """
    try:
        import xllamacpp  # noqa: F401 - whether it is there
    except ImportError as error:
        raise MissingExtraError("A likelihood by a GGUF file", "likelihood") from error
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelError(f"there is no model file {path}", path) from error
    if begins != _MAGIC:
        raise ModelError(f"{path} cannot be loaded as a GGUF model: it does not begin with GGUF", path)


class GgufServer:
    """Serves a GGUF file on the loopback interface until nothing holds it any more, through `xllamacpp`.

    Args:
        path: The model file.
        window: Tokens; None for the window that the model was trained with.
        threads: How many threads compute.

    Attributes:
        window: Tokens.

    Raises:
        MissingExtraError: The extra `likelihood` is not installed.
        ModelError: The file cannot be loaded.
    """

    def __init__(self, path: Path, window: int | None, threads: int) -> None:
        check_gguf(path)
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx = window or 0
        parameters.n_parallel = 1
        parameters.n_batch = 4 * BLOCK
        parameters.n_ubatch = BLOCK
        parameters.port = 0
        parameters.verbosity = -1
        parameters.warmup = False
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        # The window is what was asked for, not what it thinks to fit.
        parameters.fit_params = False
        # No copies of older prompts, each of which would need much memory; only the last prompt is kept.
        parameters.cache_ram_mib = 0
        parameters.n_ctx_checkpoints = 0
        # Layers with a sliding window keep all, so that a new prompt can go on from any place of the last one.
        parameters.swa_full = True
        try:
            self._server = start_llama_server(parameters)
        except RuntimeError as error:
            raise ModelError(f"{path} cannot be loaded as a GGUF model: {error}", path) from error
        self._host = self._server.address.removeprefix("http://")
        self._path = path
        self.window: int = self._send("GET", "/props")["default_generation_settings"]["n_ctx"]

    def tokenize(self, text: str, *, first: bool, parse_special_tokens: bool) -> list[int]:
        """The tokens of a text; with `first` those that begin (and end) every text as well."""
        body = {"content": text, "add_special": first, "parse_special": parse_special_tokens}
        tokens: list[int] = self._send("POST", "/tokenize", body)["tokens"]
        return tokens

    def complete(self, tokens: list[int], **settings: Any) -> dict[str, Any]:
        """What the server says to these tokens; what it has read of them before is not read again."""
        return self._send("POST", "/completion", {"prompt": tokens, "cache_prompt": True} | settings)

    def _send(self, method: str, route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self._host)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._server.key}"}
        try:
            connection.request(method, route, json.dumps(body), headers)
            reply: dict[str, Any] = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ModelError(f"the server of {self._path.name} does not answer: {error}", self._path) from error
        finally:
            connection.close()
        if "error" in reply:
            raise ModelError(f"the server of {self._path.name} refused: {reply['error'].get('message')}", self._path)
        return reply
