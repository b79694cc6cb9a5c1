"""The identity of embedding models: a name that tells the vectors of one from those of another, without secrets."""

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
# Texts that say what a model did last.
_RECORDS = re.compile(r"(.*_)?(last|latest|previous|recent|current|status|state|error|response|request)(_.*)?")
_SCALARS = (str, bool, int, float, Enum)
_WITHOUT_SETTINGS = ("builtins", "abc", "typing", "pydantic")
_OF_PYDANTIC = ("model_config", "model_fields", "model_computed_fields")
_DIGITS = 16  # of a hash
_LONGEST = 100  # characters of the name of a model
_REMEMBERED = 1024  # objects; from here on those that are gone are forgotten at each power of two


class Identity(NamedTuple):
    """What a model is called.

    Attributes:
        name: The class, the name of the model and a hash of its settings; equal names mean equal vectors.
        lasting: Whether it means the same in another process.
    """

    name: str
    lasting: bool


def identity_of(model: Any) -> Identity:
    """The class of a model, what it calls itself, and a hash of its settings.

    Fields, attributes, private ones and those of its classes count, but for secrets and what is known to change no
    vector. What the model is made with (the fields of pydantic, the parameters of its class), texts, flags and
    dimensions are read each time; anything else when the model is first seen, since it may be a record of its work or
    loaded when it is needed. They are hashed since nobody can tell for every model which of them are secrets; so the
    name can stand in files and messages. A model that does not name the model it uses, has a part that does not say
    what it is, or is of a class that another script can have too, is told by a random token of this process as well.
    """
    names = [getattr(model, name, None) for name in MODEL_NAMES]
    called = [name for name in names if isinstance(name, str) and name not in NO_NAMES]
    path = _path(type(model))
    seen = _first_seen.get(model, _see)
    settings = _settings_of(model)
    told, lasting = _told({name: own for name, own in settings.items() if _is_setting(name, own, seen.parameters)})
    lasting = lasting and seen.lasting and bool(called) and not path.startswith("__main__") and "<" not in path
    token = None if lasting else _tokens.get(model, _new_token)
    digest = digest_of([called, told, seen.others, _addresses(settings), token])
    shown = f"({without_secrets(called[0]).partition('?')[0][:_LONGEST]})" if called else ""
    return Identity(f"{path}{shown} {'' if lasting else '#'}{digest}", lasting)


class _Seen(NamedTuple):
    """What a model is made with, and its other attributes when it was first seen."""

    parameters: Collection[str]
    others: Any
    lasting: bool


def _see(model: Any) -> _Seen:
    parameters = _parameters(type(model))
    settings = _settings_of(model)
    others, lasting = _told({name: own for name, own in settings.items() if not _is_setting(name, own, parameters)})
    return _Seen(parameters, others, lasting and hasattr(model, "__dict__"))


def _parameters(kind: type) -> Collection[str]:
    """The names of what an object of a class is made with."""
    fields = getattr(kind, "model_fields", None)
    if isinstance(fields, Mapping):
        return fields
    try:
        return signature(kind).parameters
    except (TypeError, ValueError):
        return ()


def _is_setting(name: str, value: Any, parameters: Collection[str] = ()) -> bool:
    """Whether an attribute is a setting, and not a record of the model's work: most numbers count something."""
    if name.lstrip("_") in parameters or isinstance(value, bool | Enum):
        return True
    if isinstance(value, str):
        return _RECORDS.fullmatch(name.lower()) is None
    return isinstance(value, int | float) and "dim" in name.lower()


def _told(settings: Mapping[str, Any]) -> tuple[Any, bool]:
    """Settings as plain values, and whether they mean the same in another process."""
    lasting = True

    def described(value: Any) -> Any:
        nonlocal lasting
        if isinstance(value, type):
            return _path(value)
        if _path(type(value)) == "torch.dtype":
            return str(value)
        own = _settings_of(value)
        if is_dataclass(value) or hasattr(type(value), "model_fields"):
            return [_path(type(value)), as_json(own, described), _addresses(own)]
        lasting = False
        # Its own settings may be changed. Those of its parts are not followed: these may be the layers of a network.
        return [
            _tokens.get(value, _new_token),
            as_json({name: one for name, one in own.items() if _is_setting(name, one)}),
        ]

    try:
        return as_json(settings, described), lasting
    except RecursionError:
        # It contains itself, so nobody can tell whether it is still the same.
        return uuid4().hex, False


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


class _ByIdentity(Generic[T]):
    """What is known about objects, each told from all others, also from those that get its place in memory later."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], Any], T]] = {}
        self._lock = ForkSafeLock()

    def get(self, value: Any, make: Callable[[Any], T]) -> T:
        """What is known about an object; made when it is first seen."""
        with self._lock:
            known = self._of(value)
        if known is not None:
            return known[1]
        made = make(value)
        reference: Callable[[], Any]
        try:
            reference = weakref.ref(value)
        except TypeError:
            # Kept alive, so that its place in memory stays its own.
            reference = lambda: value  # noqa: E731
        with self._lock:
            # Now and then, so that a lookup stays cheap.
            if len(self._known) >= _REMEMBERED and not len(self._known) & (len(self._known) - 1):
                self._known = {key: one for key, one in self._known.items() if one[0]() is not None}
            # Another thread may have been faster.
            if (known := self._of(value)) is None:
                known = self._known[id(value)] = reference, made
        return known[1]

    def _of(self, value: Any) -> tuple[Callable[[], Any], T] | None:
        known = self._known.get(id(value))
        return known if known is not None and known[0]() is value else None


_tokens: _ByIdentity[str] = _ByIdentity()
_first_seen: _ByIdentity[_Seen] = _ByIdentity()


def _new_token(_: Any) -> str:
    return uuid4().hex


def _refused(value: Any) -> Any:
    raise TypeError(type(value).__name__)


def as_json(value: Any, other: Callable[[Any], Any] = _refused) -> Any:
    """A setting as JSON has it; secrets and what changes no result are left out of mappings."""
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
