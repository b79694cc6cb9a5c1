"""Identities of models, embedders and functions, the same in every process: what has equal ones shares results."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
from collections.abc import Mapping
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from oprag._internal.masking import describe, without_keys
from oprag.errors import ExperimentError
from oprag.index.tokenizers import COUNTERS, LOCAL, NamedTokenizer

__all__ = [
    "LOCAL",
    "client_settings",
    "counter_of",
    "digest_of",
    "identity_of_name",
    "identity_of_object",
    "is_instance",
    "is_loopback",
    "main_module",
    "qualified_name",
]


def main_module() -> str:
    """The name under which `__main__` can be imported; "__main__" if it cannot, as in a notebook."""
    main = sys.modules["__main__"]
    if getattr(main, "__file__", None) is None:
        return "__main__"
    return str(main.__spec__.name) if main.__spec__ is not None else Path(str(main.__file__)).stem  # python -m NAME


def qualified_name(function: Any, what: str) -> str:
    """MODULE:FUNCTION of a function, or MODULE:CLASS of an object; the same in every process."""
    named = function if hasattr(function, "__qualname__") else type(function)
    if "<lambda>" in named.__qualname__:
        raise ExperimentError(f"{what} is a lambda; use a named function: results are stored by name", function)
    return _path_of(named, ":")


def _path_of(value: Any, separator: str = ".") -> str:
    """Module and name of a class or function, the same if it is run as a script and if it is imported."""
    module = main_module() if value.__module__ == "__main__" else value.__module__
    return f"{module}{separator}{value.__qualname__}"


def counter_of(given: Any) -> NamedTokenizer:
    """A token counter from a function."""
    # Methods and partial functions share a name, but may count differently.
    if not inspect.isfunction(given):
        known = f"a function of a module or one of {', '.join(COUNTERS)}"
        raise ExperimentError(f"a token counter must be {known}, got {describe(given)}", given)
    name = qualified_name(given, "count_tokens")
    return NamedTokenizer(name, f"named {name}", given)


def is_instance(given: Any, package: str, *names: str) -> bool:
    """`isinstance` by package and class name, which imports nothing."""
    return not isinstance(given, type) and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__
    )


def is_loopback(address: Any) -> bool:
    """Whether an address is one of this machine, without a login."""
    try:
        parts = urlsplit(address)
        _ = parts.port
        known = parts.scheme in ("http", "https") and "@" not in parts.netloc and "\\" not in address
        return known and (parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback)
    except (ValueError, TypeError, AttributeError):
        return False


def client_settings(name: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings for a client: OpenAI's requires a key, but that of the environment is not for this machine."""
    address = settings.get("base_url")
    if address is None or not name.startswith("openai:") or {"api_key", "openai_api_key"} & settings.keys():
        return settings
    return {**settings, "api_key": (not is_loopback(address) and os.environ.get("OPENAI_API_KEY")) or "-"}


# Attributes that contain the name of the model.
_MODEL_NAMES = ("model", "model_name", "model_id", "model_path", "deployment", "deployment_name", "repo_id")
# Names of settings that are secrets or do not affect results; all others are part of the identity. A setting excluded
# by mistake would mix up the results of two models; one included by mistake only costs an extra call.
_IRRELEVANT = re.compile(
    r"(.*_)?(api_?key|(secret_)?access_key(_id)?|(api|access|auth|bearer|session|refresh|ad|security)_token"
    r"|token_provider|subscription_key|private_key|(client_)?secret|password|credentials?|authorization|cookies?"
    r"|timeout|max_retries|batch_size|a?client|proxy|proxies|callback_manager|calls|usage)"
    r"|key|secret_key|token|hf_token|pat|cache|callbacks?|metadata|rate_limiter|tags|verbose"
)
# Fields of models that do not affect replies, come from tables that change with each release of a package, or count.
_IGNORED = {"name", "profile", "custom_get_token_ids", "streaming", "stream_usage", "disable_streaming", "i"}
# Attributes with clients, whose address may come from the environment instead of a setting.
_CLIENTS = ("root_client", "client", "_client")
# Packages whose functions are identified by their path: a user's function could change under the same path.
_FRAMEWORKS = ("langchain", "langchain_core", "llama_index")
# Ends of the variables in which clients look for the address of a server, such as OPENAI_BASE_URL and OLLAMA_HOST.
_ADDRESSES = ("_BASE_URL", "_API_BASE", "_API_URL", "_ENDPOINT", "_HOST", "_URL")
_PREFIX = 6  # letters: the variables of `mistralai` start with MISTRAL
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")


def identity_of_name(name: str, settings: Mapping[str, Any]) -> str:
    """The name of a model or embedder, and a hash of its settings and of its provider's servers in the environment.

    Secrets, and settings that do not affect results, are excluded.
    """
    provider = name.partition(":")[0].partition("_")[0].upper()[:_PREFIX]
    servers = {
        variable: value
        for variable, value in os.environ.items()
        if variable.startswith(provider) and variable.endswith(_ADDRESSES)
    }
    given = {setting: part for setting, part in settings.items() if part is not None}
    return f"{_masked(name)} {digest_of([given, servers])}"


def identity_of_object(model: Any, name: str | None) -> str:
    """The class of a model, its model name, and a hash of the settings that may affect replies, without secrets.

    Settings that are None are ignored, so that a new release of a package, which adds settings, does not change it. If
    the model does not expose its name, or a setting cannot be described, the given name takes their place.
    """
    names = (getattr(model, attribute, None) for attribute in _MODEL_NAMES)
    own = next((one for one in names if isinstance(one, str) and one not in ("", "unknown")), name)
    try:
        digest = digest_of(model)
    except ExperimentError:
        own, digest = name, ""
    if not own:
        problem = (
            f"a {type(model).__name__} does not expose its model name; set a unique `name`, under which its results"
        )
        raise ExperimentError(f"{problem} are stored", model)
    return f"{_path_of(type(model))}({_masked(own)}) {digest}".rstrip()


def digest_of(settings: Any) -> str:
    """Hash of settings, without secrets; raises an ExperimentError if one of them cannot be described."""
    return hashlib.sha256(json.dumps(_described(settings), sort_keys=True).encode()).hexdigest()[:16]


def _described(value: Any) -> Any:
    """A setting as a JSON value, an object as its class and its settings, without secrets and what does not matter."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Enum | Path):
        return _masked(str(value))
    if isinstance(value, Mapping):
        return {str(name): _described(part) for name, part in value.items() if not _is_irrelevant(str(name))}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_described(part) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts
    return None if hasattr(value, "get_secret_value") else _described_object(value)


def _described_object(value: Any) -> Any:
    of_framework = getattr(value, "__module__", "").partition(".")[0] in _FRAMEWORKS
    if isinstance(value, type) or (of_framework and getattr(value, "__qualname__", "<").isidentifier()):
        schema = getattr(value, "model_json_schema", None)
        # As a text, since its names are not those of settings.
        return [_path_of(value), json.dumps(schema()) if schema is not None else None]
    if not hasattr(type(value), "model_fields"):
        raise ExperimentError(f"a setting must be a plain value, got {describe(value)}", value)
    given = {name: getattr(value, name, None) for name in type(value).model_fields if name not in _IGNORED}
    servers = [str(getattr(getattr(value, client, None), "base_url", None)) for client in _CLIENTS]
    settings = {name: part for name, part in given.items() if part is not None}
    return [_path_of(type(value)), _described(settings), _described(servers)]


def _is_irrelevant(name: str) -> bool:
    return _IRRELEVANT.fullmatch(name.lstrip("_").replace("-", "_").lower()) is not None


def _masked(text: str) -> str:
    """The text; if it is an address, without secrets."""
    return without_keys(text) if _ADDRESS.fullmatch(text) else text
