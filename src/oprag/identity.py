"""The identity of an embedding model: what tells its vectors from those of another."""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

__all__ = ["Identity", "identity_of"]

# Attributes under which embedding models name the model that they use.
_MODEL = ("model", "model_name", "model_id", "model_path", "deployment", "repo_id", "size", "embed_dim")
# What changes no vector, or must not be written down.
_IRRELEVANT = re.compile(
    r"key|secret|passw|token|auth|credential|header|prox|cookie|session|client|callback|timeout|retr|batch|chunk_size"
    r"|progress|worker|concurren|thread|cache|verbose|organization|project|user|^(name|tags|metadata|logger|async_.*)$"
)
# Numbers that are settings; others may be counters, which change while the model stays the same.
_NUMBERS = re.compile(r"dim|size|length|max|trunc|version|seed")
# Mappings that are settings; others may be state.
_MAPPINGS = re.compile(r"(kwargs|args|params|parameters|options|config|settings)$")
_LONGEST = 300  # characters of a setting; what is longer is a text


class Identity(NamedTuple):
    """What a model is called.

    Attributes:
        name: The name; equal names mean equal vectors.
        lasting: Whether it means the same in another process.
    """

    name: str
    lasting: bool


def identity_of(model: Any) -> Identity:
    """The class of a model and those of its settings that may change a vector.

    Keys, passwords and the like are no part of it, so that it can stand in files and messages. A model that does not
    say what it is gets a number that holds for this object in this process.

    Args:
        model: Embeddings of LangChain or LlamaIndex, or anything like them.
    """
    fields = getattr(type(model), "model_fields", None)
    names = fields if isinstance(fields, Mapping) else getattr(model, "__dict__", {})
    settings = {
        name: value
        for name in sorted(names)
        if not name.startswith("_") and (value := _setting(name, getattr(model, name, None))) is not None
    }
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    if not any(name in settings for name in _MODEL):
        return Identity(f"{kind} #{_number_of(model)}", lasting=False)
    written = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return Identity(f"{kind}({written})", lasting=True)


_numbers = itertools.count(1)
_numbered: dict[int, tuple[weakref.ref[Any], int]] = {}


def _number_of(model: Any) -> int:
    """A number for an object; `id` alone may be that of an object that is no more."""
    known = _numbered.get(id(model))
    if known is not None and known[0]() is model:
        return known[1]
    number = next(_numbers)
    with suppress(TypeError):
        _numbered[id(model)] = weakref.ref(model), number
    return number


def _setting(name: str, value: Any) -> Any:
    """A setting as a plain value; None where it is none, or says nothing about vectors."""
    if _IRRELEVANT.search(name):
        return None
    if isinstance(value, str):
        return _without_login(value) if "://" in value else value if len(value) <= _LONGEST else None
    if isinstance(value, bool) or (isinstance(value, int | float) and _NUMBERS.search(name)):
        return value
    if isinstance(value, Mapping) and _MAPPINGS.search(name):
        inner = {str(key): _inner(str(key), part) for key, part in sorted(value.items(), key=str)}
        return {key: part for key, part in inner.items() if part is not None} or None
    return None


def _inner(name: str, value: Any) -> Any:
    """A value inside of a mapping of settings, where numbers are settings too."""
    if isinstance(value, int | float) and not _IRRELEVANT.search(name):
        return value
    return _setting(name, value)


def _without_login(address: str) -> str:
    """The server and the path of an address."""
    try:
        parts = urlsplit(address)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
