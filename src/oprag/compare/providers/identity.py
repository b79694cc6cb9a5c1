"""The identity of a model, from what it says of itself: equal ones share their replies, in every process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oprag.embedding.identity import MODEL_NAMES, NO_NAMES, as_json, digest_of, without_secrets
from oprag.errors import ExperimentError

__all__ = ["model_identity", "parts_of", "plain_settings"]

# What changes no reply, or comes from tables that change with each version of a package.
_BESIDE = {
    *("name", "profile", "rate_limiter", "custom_get_token_ids", "tiktoken_model_name", "custom_input_type"),
    *("custom_output_type", "streaming", "stream_usage", "disable_streaming", "reuse_client", "max_attempt_number"),
    *("wait_exponential_jitter", "exponential_jitter_params", "num_workers"),
}
# Where a model that is made of others has them.
_PARTS = ("bound", "first", "middle", "last", "llm")
# Functions of these do not change by themselves.
_FRAMEWORKS = ("langchain", "langchain_core", "llama_index")


def model_identity(model: Any) -> str | None:
    """The class of a model, its name for itself, and a hash of the settings that may change a reply, without secrets.

    None where a model does not say which one it is, or a setting is an object that does not say what it is. Settings
    that are None are left out, so that a new version of a package, which knows more of them, is not another model.
    """
    part = next((part for part in parts_of(model) if _model_name(part) is not None), None)
    if part is None:
        return None
    try:
        told = _described(model)
    except TypeError:
        return None
    return f"{_path(type(part))}({_model_name(part)}) {digest_of([told, sorted(_addresses(model))])}"


def plain_settings(settings: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The settings of a model that may change its replies or vectors, without secrets."""
    try:
        told = as_json(settings, _described)
    except TypeError as error:
        raise ExperimentError(f"a setting of {model!r} must be a plain value, got a {error}") from error
    return {name: part for name, part in told.items() if part is not None}


def _model_name(part: Any) -> str | None:
    """The name of the model, as a part of it gives it."""
    for name in MODEL_NAMES:
        value = getattr(part, name, None)
        if isinstance(value, str) and value not in NO_NAMES:
            return without_secrets(value)
    return None


def parts_of(model: Any) -> Iterator[Any]:
    """The parts of a model, such as the one that settings are bound to, or the steps of a sequence; then itself."""
    for name in _PARTS:
        part = getattr(model, name, None)
        for one in part if isinstance(part, list) else [part]:
            if hasattr(type(one), "model_fields"):
                yield from parts_of(one)
    yield model


def _described(value: Any) -> Any:
    """An object as its class and its settings; a TypeError where it does not tell them."""
    if isinstance(value, type):
        schema = getattr(value, "model_json_schema", None)
        return [_path(value), schema() if schema is not None else None]
    if getattr(value, "__qualname__", "<").isidentifier() and value.__module__.partition(".")[0] in _FRAMEWORKS:
        return _path(value)
    fields = getattr(type(value), "model_fields", None)
    if not isinstance(fields, Mapping):
        raise TypeError(type(value).__name__)
    given = {name: getattr(value, name, None) for name in fields if name not in _BESIDE}
    # Classes that a package keeps to itself come and go with its versions.
    kind = next(kind for kind in type(value).__mro__ if not kind.__name__.startswith("_"))
    told = as_json({name: part for name, part in given.items() if part is not None}, _described)
    return {"is": _path(kind), "with": told}


def _path(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _addresses(model: Any) -> Iterator[str]:
    """Where the clients of a model send what they send: the environment may say it in place of a setting."""
    for part in parts_of(model):
        for name in ("root_client", "client", "_client"):
            address = getattr(getattr(part, name, None), "base_url", None)
            if address is not None:
                yield str(address)
