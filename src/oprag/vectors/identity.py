"""The identity of an embedding model: what tells its vectors from those of another."""

from __future__ import annotations

import hashlib
import itertools
import json
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from oprag.checks import check_text
from oprag.errors import OptionError
from oprag.settings import plain

__all__ = ["MODEL_NAMES", "NO_NAMES", "Identity", "identity_of", "named"]

# Attributes under which embedding models name the model that they use.
MODEL_NAMES = ("model", "model_name", "model_id", "model_path", "deployment", "deployment_name", "repo_id")
# What LlamaIndex calls a model that says nothing, and a setting that was left empty.
NO_NAMES = ("", "unknown")
_LONGEST = 100  # characters of the name of a model
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

    Settings are hashed since nobody can tell for every model which of them are secrets; so the name can stand in files
    and messages. An object keeps its name, whatever it counts or remembers while it works, unless it is told to use
    another model. One that does not say which model it uses, or that is made of other objects, gets a number that holds
    for it in this process.

    Args:
        model: Embeddings of LangChain or LlamaIndex, or anything like them.
    """
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    names = {name: getattr(model, name, None) for name in MODEL_NAMES}
    calls_itself = {name: value for name, value in names.items() if isinstance(value, str) and value not in NO_NAMES}
    known = _known.get(id(model))
    if known is not None and known.model() is model and known.calls_itself == calls_itself:
        return known.identity
    identity = _found(kind, model, calls_itself)
    key = id(model)
    try:
        reference: Any = weakref.ref(model, lambda _: _known.pop(key, None))
    except TypeError:
        # Kept alive, since its place in memory must not become that of another.
        def reference() -> Any:
            return model

    _known[key] = _Known(reference, calls_itself, identity)
    return identity


class _Known(NamedTuple):
    """What an object was called before."""

    model: Any
    calls_itself: dict[str, str]
    identity: Identity


_known: dict[int, _Known] = {}
_numbers = itertools.count(1)


def _found(kind: str, model: Any, calls_itself: Mapping[str, str]) -> Identity:
    settings = _settings(model)
    if not calls_itself or settings is None:
        return Identity(f"{kind} #{next(_numbers)}", lasting=False)
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    name = _without_login(next(iter(calls_itself.values())))[:_LONGEST]
    return Identity(f"{kind}({name}) {digest}", lasting=True)


def _settings(model: Any) -> dict[str, Any] | None:
    """All settings as plain values; None where one of them is an object that does not tell what it is."""
    fields = getattr(type(model), "model_fields", None)
    names = fields if isinstance(fields, Mapping) else getattr(model, "__dict__", None)
    if names is None:
        return None
    given = {str(name): getattr(model, name, None) for name in names}
    try:
        settings = plain(given)
    except TypeError:
        return None
    return settings if isinstance(settings, dict) else None


def _without_login(address: str) -> str:
    """A name; of an address the server and the path alone."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def named(embeddings: Any, name: str | None, wrap: Callable[[Any, str, bool], Any] | None, expected: str) -> Any:
    """Embeddings of a framework as an `Embedder` with a name; an `Embedder` as it is.

    Args:
        embeddings: What embeds.
        name: What the caller calls it.
        wrap: Makes an `Embedder` of it, its name, and whether that lasts; None where it cannot embed.
        expected: What should have been given, for the message.

    Raises:
        OptionError: It cannot embed, or has another name already.
    """
    if name is not None:
        check_text("name", name)
    if hasattr(embeddings, "embed_questions") and not isinstance(embeddings, type):
        if name not in (None, embeddings.name):
            raise OptionError(f"this embedder has the name {embeddings.name!r} already, got {name!r}", name)
        return embeddings
    if wrap is None:
        raise OptionError(f"embeddings must be {expected}, got {type(embeddings).__name__}", embeddings)
    return wrap(embeddings, *((name, True) if name is not None else identity_of(embeddings)))
