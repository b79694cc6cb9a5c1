"""The identity of embedding models: a name that tells the vectors of one from those of another, without secrets."""

from __future__ import annotations

import hashlib
import json
import re
import weakref
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from types import FunctionType, MemberDescriptorType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import uuid4

from oprag.files.fork_safe import ForkSafeLock

__all__ = ["MODEL_NAMES", "NO_NAMES", "Identity", "digest_of", "identity_of", "plain", "without_secrets"]

# Attributes under which models name the model that they use, and what they say when they name none.
MODEL_NAMES = ("model", "model_name", "model_id", "model_path", "deployment", "deployment_name", "repo_id")
NO_NAMES = ("", "unknown")
# All settings count but those that are known to be secrets, or to change no result. A word of more than one meaning is
# not enough: `pooling_token` and `text_key` are settings. What is left out by mistake mixes up the results of two
# models; what counts by mistake costs a call.
_IRRELEVANT = re.compile(
    r"(.*_)?(api_?key|api_token|(secret_)?access_key(_id)?|(access|auth|bearer|session|refresh|ad|security)_token"
    r"|token_provider|subscription_key|private_key|(client_)?secret|password|credentials?|authorization|cookies?)"
    r"|key|secret_key|token|hf_token|pat"
    r"|(.*_)?(timeout|max_retries|batch_size|a?client|proxy|proxies|callback_manager)|retry_(min|max)_seconds"
    r"|(num_|max_)?workers|(max_)?concurrency|max_concurrent_requests|show_progress(_bar)?|verbose|callbacks?|multi_process"
    r"|devices?|target_devices|cache|embeddings_cache|cache_(folder|dir)|rate_limiter|keep_alive|reuse_client|class_name"
    r"|metadata|tags|logger|(.*_)?(calls|usage|stats|statistics|history)"
)
# Addresses are shown, so of their queries nothing stays that may be a secret.
_SECRET_IN_QUERY = re.compile(r"(.*_)?(key|secret|password|token|pat|credentials?|sig|signature)")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_SCALARS = (str, bool, int, float, Enum)
_WITHOUT_SETTINGS = ("builtins", "abc", "typing", "pydantic")
_OF_PYDANTIC = ("model_config", "model_fields", "model_computed_fields")
_DIGITS = 16  # of a hash
_LONGEST = 100  # characters of the name of a model
_REMEMBERED = 1024  # objects with a token; from here on those that are gone are forgotten at each power of two


class Identity(NamedTuple):
    """What a model is called.

    Attributes:
        name: The class, the name of the model and a hash of its settings; equal names mean equal vectors.
        lasting: Whether it means the same in another process.
    """

    name: str
    lasting: bool


def identity_of(model: Any) -> Identity:
    """The class of a model, what it calls itself, and a hash of all that it holds, read anew each time.

    Fields, attributes, private ones and those of its classes count, but for secrets and what is known to change no
    vector. They are hashed since nobody can tell for every model which of them are secrets; so the name can stand in
    files and messages. A model that does not name the model it uses, has a part that does not say what it is, or is of
    a class that another script can have too, is told by a random token of this process as well.

    Args:
        model: Embeddings of LangChain or LlamaIndex, or anything like them.
    """
    names = [getattr(model, name, None) for name in MODEL_NAMES]
    called = [name for name in names if isinstance(name, str) and name not in NO_NAMES]
    path = _path(type(model))
    lasting = bool(called) and hasattr(model, "__dict__") and not path.startswith("__main__") and "<" not in path

    def described(value: Any) -> Any:
        nonlocal lasting
        if isinstance(value, type):
            return _path(value)
        if _path(type(value)) == "torch.dtype":
            return str(value)
        settings = _settings_of(value)
        if value is model or is_dataclass(value) or hasattr(type(value), "model_fields"):
            return [_path(type(value)), plain(settings, described), _addresses(settings)]
        lasting = False
        # Its own settings may be changed. Those of its parts are not followed: these may be the layers of a network.
        return [_token_of(value), plain({name: own for name, own in settings.items() if isinstance(own, _SCALARS)})]

    try:
        told = described(model)
    except RecursionError:
        # It contains itself, so nobody can tell whether it is still the same.
        told, lasting = uuid4().hex, False
    digest = digest_of([called, told, None if lasting else _token_of(model)])
    shown = f"({without_secrets(called[0]).partition('?')[0][:_LONGEST]})" if called else ""
    return Identity(f"{path}{shown} {'' if lasting else '#'}{digest}", lasting)


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _settings_of(value: Any) -> dict[str, Any]:
    """All that an object holds, by name: what its classes hold, its slots, fields and attributes.

    What is None is left out, so that a new version of a package, which knows more settings, makes no other model of it.
    """
    settings: dict[str, Any] = {}
    for kind in reversed(type(value).__mro__):
        if kind.__module__.partition(".")[0] in _WITHOUT_SETTINGS:
            continue
        for name, own in vars(kind).items():
            # Most are functions, and this is done at each question.
            if type(own) is FunctionType or name.startswith("__") or name in _OF_PYDANTIC:
                continue
            if isinstance(own, MemberDescriptorType):
                settings[name] = getattr(value, name, None)
            elif isinstance(own, (*_SCALARS, list, tuple, dict, set)):
                settings[name] = own
    for name in ("__dict__", "__pydantic_private__", "__pydantic_extra__"):
        settings |= getattr(value, name, None) or {}
    return {name: own for name, own in settings.items() if own is not None}


def _addresses(settings: Mapping[str, Any]) -> list[str]:
    """Where clients send to, unless a setting says it: the environment may say it in place of one."""
    clients = [value for name, value in settings.items() if name.endswith("client")]
    # The client of a client, as the one of HTTP in that of a provider.
    for _ in range(2):
        clients += [inner for client in clients if (inner := getattr(client, "_client", None)) is not None]
    addresses = [getattr(client, "base_url", None) for client in clients]
    told = {"", *(value.rstrip("/") for value in settings.values() if isinstance(value, str))}
    return sorted(
        {str(one).rstrip("/") for one in addresses if isinstance(one, str) or type(one).__name__ == "URL"} - told
    )


_tokens: dict[int, tuple[Callable[[], Any], str]] = {}
_lock = ForkSafeLock()


def _token_of(value: Any) -> str:
    """What tells an object from all others, also from those that get its place in memory later."""
    with _lock:
        reference, token = _tokens.get(id(value), (lambda: None, ""))
        if reference() is not value:
            try:
                reference = weakref.ref(value)
            except TypeError:
                # Kept alive, so that its place in memory stays its own.
                reference = lambda: value  # noqa: E731
            token = uuid4().hex
            if len(_tokens) >= _REMEMBERED and not len(_tokens) & (len(_tokens) - 1):
                for key in [key for key, (alive, _) in _tokens.items() if alive() is None]:
                    del _tokens[key]
            _tokens[id(value)] = reference, token
        return token


def _refused(value: Any) -> Any:
    raise TypeError(type(value).__name__)


def plain(value: Any, other: Callable[[Any], Any] = _refused) -> Any:
    """A setting as JSON has it; secrets and what changes no result are left out of mappings.

    Args:
        value: The setting.
        other: Tells what an object is that JSON does not have.

    Raises:
        TypeError: It is an object that does not tell what it is.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Enum | Path):
        return str(value)
    if isinstance(value, Mapping):
        named = {str(name): part for name, part in value.items() if not _IRRELEVANT.fullmatch(_plain_name(str(name)))}
        return {name: plain(part, other) for name, part in named.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [plain(part, other) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts
    return None if hasattr(value, "get_secret_value") else other(value)


def _plain_name(name: str) -> str:
    return name.lstrip("_").replace("-", "_").lower()


def digest_of(settings: Any) -> str:
    """A hash of plain settings; of addresses in them without who logs in there."""
    return hashlib.sha256(json.dumps(_cleaned(settings), sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _cleaned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _cleaned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part) for part in value]
    return without_secrets(value) if isinstance(value, str) else value


def without_secrets(text: str) -> str:
    """A text; of an address neither who logs in there nor keys in its query."""
    if not _ADDRESS.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return ""
    query = urlencode([pair for pair in pairs if not _SECRET_IN_QUERY.fullmatch(_plain_name(pair[0]))])
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{'?' if query else ''}{query}"
