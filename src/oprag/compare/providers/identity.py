"""Identities of models, embedders and functions, the same in every process: what has equal ones shares results."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from oprag._internal.masking import describe
from oprag._internal.tokens import approximate_tokens
from oprag.errors import ExperimentError
from oprag.index.tokenizers import COUNTERS, LOCAL, NamedTokenizer, counter_named

__all__ = [
    "LOCAL",
    "client_settings",
    "counter_of",
    "digest_of",
    "identity_as_named",
    "identity_of_name",
    "identity_of_object",
    "is_instance",
    "is_loopback",
    "main_module",
    "module_of",
    "path_of",
    "qualified_name",
    "set_main_module",
]

_main: str | None = None


def set_main_module(name: str) -> None:
    """Set the name of `__main__` in a worker, whose own `__main__` is not the script that the classes come from."""
    global _main  # noqa: PLW0603 - once per process
    _main = name


def main_module() -> str:
    """The name under which `__main__` can be imported; "__main__" if it cannot, as in a notebook."""
    main = sys.modules["__main__"]
    if _main is not None or getattr(main, "__file__", None) is None:
        return _main or "__main__"
    return str(main.__spec__.name) if main.__spec__ is not None else Path(str(main.__file__)).stem  # python -m NAME


def module_of(value: Any) -> str:
    """The module of a class or function, the same if it is run as a script and if it is imported."""
    return main_module() if value.__module__ == "__main__" else str(value.__module__)


def qualified_name(function: Any, what: str) -> str:
    """MODULE:FUNCTION of a function, or MODULE:CLASS of an object; the same in every process."""
    named = function if hasattr(function, "__qualname__") else type(function)
    if "<lambda>" in named.__qualname__:
        raise ExperimentError(f"{what} is a lambda; use a named function: results are stored by name", function)
    return f"{module_of(named)}:{named.__qualname__}"


def counter_of(given: Any) -> NamedTokenizer:
    """A token counter, from a name in `oprag.index.tokenizers` or from a function."""
    if isinstance(given, NamedTokenizer):
        return given
    if given is approximate_tokens:
        given = "approximate"
    if isinstance(given, str):
        return counter_named(given)
    if not callable(given) or isinstance(given, type):
        known = ", ".join(COUNTERS)
        raise ExperimentError(f"a token counter must be a function or one of {known}, got {describe(given)}", given)
    if hasattr(given, "__self__"):
        # Methods of two objects share a name, but may count differently.
        raise ExperimentError(f"count_tokens must be a function of a module, got the method {describe(given)}", given)
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


# Attributes that contain the name of the model, and values that stand for "not set".
_MODEL_NAMES = ("model", "model_name", "model_id", "model_path", "deployment", "deployment_name", "repo_id")
_NO_NAMES = ("", "unknown")
# Names of settings that are secrets or do not affect results; all others are part of the identity. Ambiguous words are
# not excluded: `pooling_token` and `text_key` are settings. A setting excluded by mistake would mix up the results of
# two models; one included by mistake only costs an extra call.
_IRRELEVANT = re.compile(
    r"(.*_)?(api_?key|api_token|(secret_)?access_key(_id)?|(access|auth|bearer|session|refresh|ad|security)_token"
    r"|token_provider|subscription_key|private_key|(client_)?secret|password|credentials?|authorization|cookies?)"
    r"|key|secret_key|token|hf_token|pat"
    r"|(.*_)?(timeout|max_retries|batch_size|a?client|proxy|proxies|callback_manager)|retry_(min|max)_seconds"
    r"|(num_|max_)?workers|(max_)?concurrency|max_concurrent_requests|show_progress(_bar)?|verbose|callbacks?|multi_process"
    r"|devices?|target_devices|cache|embeddings_cache|cache_(folder|dir)|rate_limiter|keep_alive|reuse_client|class_name"
    r"|metadata|tags|logger|(.*_)?(calls|usage|stats|statistics|history)"
)
# Query parameters removed from URLs, since these are part of messages.
_SECRET_IN_QUERY = re.compile(r"(.*_)?(key|secret|password|token|pat|credentials?|sig|signature)")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_DIGITS = 16  # of a hash
# Fields that do not affect replies, or come from tables that change with each release of a package.
_IGNORED = {"name", "profile", "custom_get_token_ids", "streaming", "stream_usage", "disable_streaming"}
# Attributes in which composed models store their parts.
_PARTS = ("bound", "first", "middle", "last", "llm")
# Packages whose functions are identified by their path: a user's function could change under the same path.
_FRAMEWORKS = ("langchain", "langchain_core", "llama_index")
# Ends of the variables in which clients look for the address of a server, such as OPENAI_BASE_URL and OLLAMA_HOST.
_ADDRESSES = ("_BASE_URL", "_API_BASE", "_API_URL", "_ENDPOINT", "_HOST", "_URL")
_PREFIX = 6  # letters: the variables of `mistralai` start with MISTRAL


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
    try:
        digest = digest_of([{setting: part for setting, part in settings.items() if part is not None}, servers])
    except TypeError as error:
        raise ExperimentError(f"a setting of {name!r} must be a plain value, got a {error}") from error
    return f"{_without_secrets(name)} {digest}"


def identity_of_object(model: Any, name: str | None) -> str:
    """The class of a model, its model name, and a hash of the settings that may affect replies, without secrets.

    Settings that are None are ignored, so that a new release of a package, which adds settings, does not change it. If
    the model does not expose its name, or a setting cannot be described, the given name takes their place.
    """
    for part in _parts_of(model):
        for own in (getattr(part, attribute, None) for attribute in _MODEL_NAMES):
            if isinstance(own, str) and own not in _NO_NAMES:
                try:
                    digest = digest_of([_described(model), sorted(_addresses(model))])
                except TypeError:
                    return identity_as_named(model, name)
                return f"{path_of(type(part))}({_without_secrets(own)}) {digest}"
    return identity_as_named(model, name)


def identity_as_named(given: Any, name: str | None) -> str:
    """The class of an object, and the name that it was given, which it must have."""
    if name is None:
        kind = type(given).__name__
        raise ExperimentError(
            f"a {kind} does not expose its model name; set a unique `name`, under which its results are stored", given
        )
    return f"{path_of(type(given))}({name})"


def path_of(value: Any) -> str:
    """MODULE.CLASS of a class; the same in every process."""
    return f"{module_of(value)}.{value.__qualname__}"


def _parts_of(model: Any) -> Iterator[Any]:
    """The parts of a model, such as the target of a binding or the steps of a sequence; then the model."""
    for name in _PARTS:
        part = getattr(model, name, None)
        for one in part if isinstance(part, list) else [part]:
            if hasattr(type(one), "model_fields"):
                yield from _parts_of(one)
    yield model


def _described(value: Any) -> Any:
    """An object as its class and its settings; raises TypeError if it does not expose them."""
    if isinstance(value, type):
        schema = getattr(value, "model_json_schema", None)
        # As a text, since its names are not those of settings.
        return [path_of(value), json.dumps(schema()) if schema is not None else None]
    if getattr(value, "__qualname__", "<").isidentifier() and value.__module__.partition(".")[0] in _FRAMEWORKS:
        return path_of(value)
    if not hasattr(type(value), "model_fields"):
        raise TypeError(type(value).__name__)
    given = {name: getattr(value, name, None) for name in type(value).model_fields if name not in _IGNORED}
    described = _as_json({name: part for name, part in given.items() if part is not None})
    return [path_of(type(value)), described]


def _addresses(model: Any) -> Iterator[str]:
    """The base URLs of a model's clients, which may come from the environment instead of a setting."""
    for part in _parts_of(model):
        for name in ("root_client", "client", "_client"):
            address = getattr(getattr(part, name, None), "base_url", None)
            if address is not None:
                yield str(address)


def _as_json(value: Any) -> Any:
    """A setting as a JSON value, without secrets and settings that do not affect results."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Enum | Path):
        return _without_secrets(str(value))
    if isinstance(value, Mapping):
        named = {str(name): part for name, part in value.items() if not _IRRELEVANT.fullmatch(_plain_name(str(name)))}
        return {name: _as_json(part) for name, part in named.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_as_json(part) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts
    return None if hasattr(value, "get_secret_value") else _described(value)


def _plain_name(name: str) -> str:
    return name.lstrip("_").replace("-", "_").lower()


def digest_of(settings: Any) -> str:
    """Hash of settings, without secrets; raises TypeError if one of them cannot be described."""
    return hashlib.sha256(json.dumps(_as_json(settings), sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _without_secrets(text: str) -> str:
    """The text unchanged; if it is a URL, without login and secret query parameters."""
    if not _ADDRESS.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return ""
    query = urlencode([pair for pair in pairs if not _SECRET_IN_QUERY.fullmatch(_plain_name(pair[0]))])
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{'?' if query else ''}{query}"
