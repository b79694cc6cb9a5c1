"""Settings of models as plain values, without secrets and without what changes no result."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_text

__all__ = [
    "MODEL_NAMES",
    "NO_NAMES",
    "Identity",
    "NamedEmbedder",
    "digest_of",
    "identity_of",
    "is_relevant",
    "named",
    "plain",
    "without_secrets",
]

# All settings count but those that are known to be secrets, or to change no result. A word of more than one meaning is
# not enough: `pooling_token` and `text_key` are settings. What is left out by mistake mixes up the results of two
# models; what counts by mistake costs a call.
_SECRETS = (
    r"(.*_)?(api_?key|api_token|(secret_)?access_key(_id)?|(access|auth|bearer|session|refresh|ad|security)_token"
    r"|token_provider|subscription_key|private_key|(client_)?secret|password|credentials?|authorization|cookies?)"
    r"|key|secret_key|token|hf_token|pat"
)
_HARMLESS = (
    r"(.*_)?(timeout|max_retries|batch_size|a?client|proxy|proxies|callback_manager)|retry_(min|max)_seconds"
    r"|(num_|max_)?workers|(max_)?concurrency|max_concurrent_requests|show_progress(_bar)?|verbose|callbacks?|multi_process"
    r"|devices?|target_devices|cache|embeddings_cache|cache_(folder|dir)|rate_limiter|keep_alive|reuse_client|class_name"
    r"|metadata|tags|logger"
)
_IRRELEVANT = re.compile(f"{_SECRETS}|{_HARMLESS}")
# Addresses are shown, so of their queries nothing stays that may be a secret.
_SECRET_IN_QUERY = re.compile(r"(.*_)?(key|secret|password|token|pat|credentials?|sig|signature)")
_SETTING_DIGITS = 16  # of a hash
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")


def is_relevant(name: str) -> bool:
    """Whether a setting, or a header, of this name may change a result, and is no secret."""
    return _IRRELEVANT.fullmatch(_plain_name(name)) is None


def _plain_name(name: str) -> str:
    return name.lstrip("_").replace("-", "_").lower()


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
        inner = {str(name): part for name, part in value.items() if is_relevant(str(name))}
        return {name: plain(part, other) for name, part in inner.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [plain(part, other) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts
    if hasattr(value, "get_secret_value"):
        return None
    return other(value)


def without_secrets(text: str) -> str:
    """A text; of an address neither who logs in there nor keys in its query."""
    if not _ADDRESS.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        shown = [pair for pair in parse_qsl(parts.query) if not _SECRET_IN_QUERY.fullmatch(_plain_name(pair[0]))]
        query = urlencode(shown)
    except ValueError:
        return ""
    server = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{server}{parts.path}{'?' if query else ''}{query}"


def digest_of(settings: Any) -> str:
    """A hash of plain settings.

    Args:
        settings: Anything that JSON has; addresses in it are hashed without what logs in there.
    """
    text = json.dumps(_cleaned(settings), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_SETTING_DIGITS]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(part) for name, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, list | tuple) else value


# Attributes under which embedding models name the model that they use.
MODEL_NAMES = ("model", "model_name", "model_id", "model_path", "deployment", "deployment_name", "repo_id")
# What LlamaIndex calls a model that says nothing, and a setting that was left empty.
NO_NAMES = ("", "unknown")
_LONGEST = 100  # characters of the name of a model
# Texts that change with each call; a cache would never find anything if they counted.
_RECORDS = re.compile(r"(.*_)?(last|latest|previous|recent|current|status|state|error|response|request)(_.*)?")
_REMEMBERED = 1000  # names of one model, in case a text that it keeps changes with each call
_DIGITS = 12  # of the hash of the settings


class Identity(NamedTuple):
    """What a model is called.

    Attributes:
        name: The class, the name of the model and a hash of its settings; equal names mean equal vectors.
        lasting: Whether it means the same in another process.
    """

    name: str
    lasting: bool


def identity_of(model: Any) -> Identity:
    """The class of a model, what it calls itself, and a hash of all settings that may change a vector.

    All fields and attributes count but secrets and what is known to change no vector. They are
    hashed since nobody can tell for every model which of them are secrets; so the name can stand in files and messages.
    Fields of a pydantic model, attributes named as parameters of a class, texts and flags are read each time. Other
    attributes, such as counters and loaded weights, may change while the model works, and are read once. A model that
    does not say which model it uses, or has a setting that cannot be described, gets a number that holds for it in this
    process.

    Args:
        model: Embeddings of LangChain or LlamaIndex, or anything like them.
    """
    known = _known.get(id(model))
    if known is None or known.model() is not model:
        known = _first_seen(model)
    names = {name: getattr(model, name, None) for name in MODEL_NAMES}
    calls_itself = [value for value in names.values() if isinstance(value, str) and value not in NO_NAMES]
    values = _values(model)
    told, lasting = _told({name: value for name, value in values.items() if known.is_setting(name, value)})
    digest = digest_of([calls_itself, told, known.others, _addresses(values)])
    if digest not in known.identities:
        name = f"{type(model).__module__}.{type(model).__qualname__}"
        if calls_itself:
            name += f"({_without_login(calls_itself[0])[:_LONGEST]})"
        lasting = bool(calls_itself) and lasting and known.lasting
        name += f" {digest[:_DIGITS]}" if lasting else f" #{next(_numbers)}"
        if len(known.identities) >= _REMEMBERED:
            known.identities.pop(next(iter(known.identities)), None)
        # Threads that see a model for the first time must not call it by two numbers.
        return known.identities.setdefault(digest, Identity(name, lasting))
    return known.identities[digest]


class _Known(NamedTuple):
    """What is known about an object that was seen before.

    Attributes:
        model: Gives the object.
        parameters: The names of parameters and fields, which are read each time.
        others: What was read once, as plain values.
        lasting: Whether these mean the same in another process.
        identities: What it was called, by the hash of all settings.
    """

    model: Any
    parameters: Collection[str]
    others: Any
    lasting: bool
    identities: dict[str, Identity]

    def is_setting(self, name: str, value: Any) -> bool:
        """Whether an attribute is read each time."""
        return name.lstrip("_") in self.parameters or _is_plain_setting(name, value)


_known: dict[int, _Known] = {}
_numbers = itertools.count(1)


def _first_seen(model: Any) -> _Known:
    known = _Known(None, _parameters(type(model)), others=None, lasting=True, identities={})
    values = _values(model)
    others, lasting = _told({name: value for name, value in values.items() if not known.is_setting(name, value)})
    key = id(model)
    try:
        reference: Any = weakref.ref(model, lambda _: _known.pop(key, None))
    except TypeError:
        # Kept alive, since its place in memory must not become that of another.
        def reference() -> Any:
            return model

    # Where an object keeps nothing that can be read, nothing tells it from another one.
    _known[key] = known._replace(model=reference, others=others, lasting=lasting and hasattr(model, "__dict__"))
    return _known[key]


def _is_plain_setting(name: str, value: Any) -> bool:
    """Whether an attribute that is not a parameter looks like a setting, and not like a record of the model's work."""
    if isinstance(value, str):
        return _RECORDS.fullmatch(name.lower()) is None
    # Most numbers count something.
    return isinstance(value, bool) or (isinstance(value, int | float) and "dim" in name.lower())


def _parameters(kind: type) -> Collection[str]:
    """The names of what an object of a class is made with."""
    if _is_pydantic(kind):
        return kind.model_fields  # type: ignore[attr-defined, no-any-return]
    try:
        return signature(kind).parameters
    except (TypeError, ValueError):
        return ()


def _is_pydantic(kind: type) -> bool:
    return isinstance(getattr(kind, "model_fields", None), Mapping)


def _values(model: Any) -> dict[str, Any]:
    """All that an object keeps: its fields or attributes, private ones too, and what else it was given."""
    parts: list[Any] = [_in_class(kind) for kind in reversed(type(model).__mro__) if not _is_pydantic(kind)]
    parts += [getattr(model, name, None) for name in ("__dict__", "__pydantic_private__", "__pydantic_extra__")]
    parts += [_in_slots(model, kind) for kind in type(model).__mro__ if "__slots__" in vars(kind)]
    return {name: value for part in parts if isinstance(part, Mapping) for name, value in part.items()}


def _in_class(kind: type) -> dict[str, Any]:
    """Settings for all objects of a class, such as a prefix."""
    return {
        name: value
        for name, value in vars(kind).items()
        if not name.startswith("__") and _is_plain_setting(name, value)
    }


def _in_slots(model: Any, kind: type) -> dict[str, Any]:
    slots = vars(kind)["__slots__"]
    names = (slots,) if isinstance(slots, str) else slots
    # Those of Python and pydantic are read by name.
    return {name: getattr(model, name, None) for name in names if not name.startswith("__")}


def _told(values: Mapping[str, Any]) -> tuple[Any, bool]:
    """Values as plain ones, and whether they mean the same in another process.

    What is None is left out, so that a new version of a package, which knows more settings, makes no other model of it.
    """
    lasting = True

    def described(value: Any) -> Any:
        nonlocal lasting
        kind = type(value)
        path = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(value, type):
            return f"{value.__module__}.{value.__qualname__}"
        if path == "torch.dtype":
            return str(value)
        if _is_pydantic(kind) or is_dataclass(value):
            inner = _values(value)
            return [path, plain(_given(inner), described), _addresses(inner)]
        lasting = False
        # Its place in memory is not enough: a setting of it may be changed later.
        inner = {name: part for name, part in _values(value).items() if _is_plain_setting(name, part)}
        return [path, id(value), plain(inner)]

    try:
        return plain(_given(values), described), lasting
    except RecursionError:
        return sorted((name, id(value)) for name, value in values.items()), False


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _addresses(values: Mapping[str, Any]) -> list[str]:
    """Where clients send to, unless a setting says it: the environment may say it in place of one."""
    clients = [value for name, value in values.items() if name.endswith("client")]
    # The client of a client, as the one of HTTP in that of a provider.
    for _ in range(2):
        clients += [inner for client in clients if (inner := getattr(client, "_client", None)) is not None]
    addresses = [getattr(client, "base_url", None) for client in clients]
    told = {"", *(value.rstrip("/") for value in values.values() if isinstance(value, str))}
    return sorted(
        {str(one).rstrip("/") for one in addresses if isinstance(one, str) or type(one).__name__ == "URL"} - told
    )


def _without_login(address: str) -> str:
    """A name; of an address the server and the path alone."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


@dataclass(frozen=True)
class NamedEmbedder:
    """An embedding model of a framework, with a name.

    Attributes:
        embeddings: What embeds.
        given_name: What the caller calls it, instead of its identity.
    """

    embeddings: Any
    given_name: str | None = None

    @property
    def name(self) -> str:
        """What tells its vectors from those of another: read each time, since settings may be changed."""
        return identity_of(self.embeddings).name if self.given_name is None else self.given_name

    @property
    def lasting(self) -> bool:
        """Whether the name means the same in another process."""
        return self.given_name is not None or identity_of(self.embeddings).lasting


def named(embeddings: Any, name: str | None, wrap: Callable[[Any, str | None], Any] | None, rule: str) -> Any:
    """Embeddings of a framework as an `Embedder` with a name; an `Embedder` as it is.

    Args:
        embeddings: What embeds.
        name: What the caller calls it.
        wrap: Makes an `Embedder` of it and that name; None where it cannot embed.
        rule: What must be given under which option, for the message.

    Raises:
        OptionError: It cannot embed, or has another name already.
    """
    if name is not None:
        check_text("name", name)
    if hasattr(embeddings, "embed_questions") and not isinstance(embeddings, type):
        if name not in (None, embeddings.name):
            raise OptionError(f"this embedder has the name {embeddings.name!r} already, got {describe(name)}", name)
        return embeddings
    if wrap is None:
        raise OptionError(f"{rule}, got {type(embeddings).__name__}", embeddings)
    return wrap(embeddings, name)
