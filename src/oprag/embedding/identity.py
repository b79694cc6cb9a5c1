"""Identity of embedding models: a name that distinguishes the vectors of different models, without secrets."""

from __future__ import annotations

import hashlib
import json
import re
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass
from enum import Enum
from inspect import signature
from pathlib import Path
from types import FunctionType, MemberDescriptorType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import uuid4

from oprag.files.fork_safe import ForkSafeLock

__all__ = ["MODEL_NAMES", "NO_NAMES", "Identity", "as_json", "digest_of", "identity_of", "without_secrets"]

T = TypeVar("T")

# Attributes that contain the name of the model, and values that stand for "not set".
MODEL_NAMES = ("model", "model_name", "model_id", "model_path", "deployment", "deployment_name", "repo_id")
NO_NAMES = ("", "unknown")
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
# Names of attributes that record a model's recent activity.
_RECORDS = re.compile(r"(.*_)?(last|latest|previous|recent|current|status|state|error|response|request)(_.*)?")
_SCALARS = (str, bool, int, float, Enum)
_WITHOUT_SETTINGS = ("builtins", "abc", "typing", "pydantic")
_OF_PYDANTIC = ("model_config", "model_fields", "model_computed_fields")
_DIGITS = 16  # of a hash
_MAX_NAME_LENGTH = 100  # characters of a model name
_REMEMBERED = 1024  # entries; from here on, entries of deleted objects are removed at each power of two


class Identity(NamedTuple):
    """The identity of a model.

    Attributes:
        name: The class, the model name and a hash of the settings; models with the same name produce the same vectors.
        persistent: Whether the name is stable across processes.
    """

    name: str
    persistent: bool


def identity_of(model: Any) -> Identity:
    """Determine the identity of a model: its class, its model name and a hash of its settings.

    All attributes are included, also private ones and those of its classes, except secrets and settings that do not
    affect vectors. Constructor parameters (pydantic fields, parameters of the class), strings, flags and dimensions are
    read on every call; other attributes only once, when the model is first seen, since they may be records of its work
    or be loaded lazily. The settings are hashed because any of them could be a secret, so that the name can be used in
    files and messages.

    The identity includes a random token, and so is valid only in this process, if the model has no model name or no
    `__dict__`, a setting is an object that cannot be described, or the class may be defined differently elsewhere
    (`__main__`, local classes).
    """
    attributes = [getattr(model, name, None) for name in MODEL_NAMES]
    names = [name for name in attributes if isinstance(name, str) and name not in NO_NAMES]
    path = _path(type(model))
    snapshot = _snapshots.get(model, _take_snapshot)
    settings = _settings_of(model)
    values, persistent = _plain(
        {name: own for name, own in settings.items() if _is_setting(name, own, snapshot.parameters)}
    )
    persistent = (
        persistent and snapshot.persistent and bool(names) and not path.startswith("__main__") and "<" not in path
    )
    token = None if persistent else _tokens.get(model, _new_token)
    digest = digest_of([names, values, snapshot.others, _addresses(settings), token])
    shown = f"({without_secrets(names[0]).partition('?')[0][:_MAX_NAME_LENGTH]})" if names else ""
    return Identity(f"{path}{shown} {'' if persistent else '#'}{digest}", persistent)


class _Snapshot(NamedTuple):
    """Values that are read from a model once, when it is first seen.

    Attributes:
        parameters: The names of its constructor parameters.
        others: The values of attributes that are not settings.
        persistent: Whether these values are stable across processes.
    """

    parameters: Collection[str]
    others: Any
    persistent: bool


def _take_snapshot(model: Any) -> _Snapshot:
    parameters = _parameters(type(model))
    settings = _settings_of(model)
    others, persistent = _plain({name: own for name, own in settings.items() if not _is_setting(name, own, parameters)})
    return _Snapshot(parameters, others, persistent and hasattr(model, "__dict__"))


def _parameters(kind: type) -> Collection[str]:
    """The names of a class's pydantic fields or constructor parameters."""
    fields = getattr(kind, "model_fields", None)
    if isinstance(fields, Mapping):
        return fields
    try:
        return signature(kind).parameters
    except (TypeError, ValueError):
        return ()


def _is_setting(name: str, value: Any, parameters: Collection[str] = ()) -> bool:
    """Whether an attribute is a setting, not a record of the model's work; most numbers are counters."""
    if name.lstrip("_") in parameters or isinstance(value, bool | Enum):
        return True
    if isinstance(value, str):
        return _RECORDS.fullmatch(name.lower()) is None
    return isinstance(value, int | float) and "dim" in name.lower()


def _plain(settings: Mapping[str, Any]) -> tuple[Any, bool]:
    """Settings as JSON values, and whether these are stable across processes."""
    persistent = True

    def described(value: Any) -> Any:
        nonlocal persistent
        if isinstance(value, type):
            return _path(value)
        if _path(type(value)) == "torch.dtype":
            return str(value)
        own = _settings_of(value)
        if is_dataclass(value) or hasattr(type(value), "model_fields"):
            return [_path(type(value)), as_json(own, described), _addresses(own)]
        persistent = False
        # Its own settings may change. Nested objects are not followed, since they may be the layers of a network.
        return [
            _tokens.get(value, _new_token),
            as_json({name: one for name, one in own.items() if _is_setting(name, one)}),
        ]

    try:
        return as_json(settings, described), persistent
    except RecursionError:
        # It contains itself, so changes cannot be detected.
        return uuid4().hex, False


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _settings_of(value: Any) -> dict[str, Any]:
    """The attributes of an object by name: class attributes, slots, fields and instance attributes.

    Values of None are omitted, so that the identity does not change when a new version of a package adds settings.
    """
    settings: dict[str, Any] = {}
    for kind in reversed(type(value).__mro__):
        if kind.__module__.partition(".")[0] in _WITHOUT_SETTINGS:
            continue
        for name, own in vars(kind).items():
            # Most are functions; checked first, since this runs for every question.
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
    """The base URLs of clients that are not among the settings, since they may come from environment variables."""
    clients = [value for name, value in settings.items() if name.endswith("client")]
    # Clients of clients, such as the HTTP client in a provider's client.
    for _ in range(2):
        clients += [inner for client in clients if (inner := getattr(client, "_client", None)) is not None]
    addresses = [getattr(client, "base_url", None) for client in clients]
    known = {"", *(value.rstrip("/") for value in settings.values() if isinstance(value, str))}
    return sorted(
        {str(one).rstrip("/") for one in addresses if isinstance(one, str) or type(one).__name__ == "URL"} - known
    )


class _ByIdentity(Generic[T]):
    """Cache of values by object identity; safe if a new object reuses the id of a deleted one."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], Any], T]] = {}
        self._lock = ForkSafeLock()

    def get(self, value: Any, make: Callable[[Any], T]) -> T:
        """Return the cached value of an object, created on first access."""
        with self._lock:
            known = self._find(value)
        if known is not None:
            return known[1]
        made = make(value)
        reference: Callable[[], Any]
        try:
            reference = weakref.ref(value)
        except TypeError:
            # Keep the object alive, so that its id is not reused.
            reference = lambda: value  # noqa: E731
        with self._lock:
            # Only at powers of two, so that lookups stay cheap.
            if len(self._known) >= _REMEMBERED and not len(self._known) & (len(self._known) - 1):
                self._known = {key: one for key, one in self._known.items() if one[0]() is not None}
            # Another thread may have added it.
            if (known := self._find(value)) is None:
                known = self._known[id(value)] = reference, made
        return known[1]

    def _find(self, value: Any) -> tuple[Callable[[], Any], T] | None:
        known = self._known.get(id(value))
        return known if known is not None and known[0]() is value else None


_tokens: _ByIdentity[str] = _ByIdentity()
_snapshots: _ByIdentity[_Snapshot] = _ByIdentity()


def _new_token(_: Any) -> str:
    return uuid4().hex


def _reject(value: Any) -> Any:
    raise TypeError(type(value).__name__)


def as_json(value: Any, other: Callable[[Any], Any] = _reject) -> Any:
    """Convert a setting to a JSON value; omit secrets and settings that do not affect results from mappings.

    Args:
        value: The setting.
        other: Converts values of types that JSON does not have; rejects them by default.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Enum | Path):
        return str(value)
    if isinstance(value, Mapping):
        named = {str(name): part for name, part in value.items() if not _IRRELEVANT.fullmatch(_plain_name(str(name)))}
        return {name: as_json(part, other) for name, part in named.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [as_json(part, other) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts
    return None if hasattr(value, "get_secret_value") else other(value)


def _plain_name(name: str) -> str:
    return name.lstrip("_").replace("-", "_").lower()


def digest_of(settings: Any) -> str:
    """Hash of plain settings; logins and secret query parameters of URLs are excluded."""
    return hashlib.sha256(json.dumps(_cleaned(settings), sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _cleaned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _cleaned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part) for part in value]
    return without_secrets(value) if isinstance(value, str) else value


def without_secrets(text: str) -> str:
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
