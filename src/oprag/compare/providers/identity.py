"""The identity of a model, from its own attributes: models with equal identities share cached replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oprag.compare.providers.names import module_of
from oprag.embedding.identity import MODEL_NAMES, NO_NAMES, as_json, digest_of, without_secrets
from oprag.errors import ExperimentError

__all__ = ["model_identity", "parts_of", "path_of", "plain_settings"]

# Fields that do not affect replies, or come from tables that change with each release of a package.
_IGNORED = {
    *("name", "profile", "rate_limiter", "custom_get_token_ids", "tiktoken_model_name", "custom_input_type"),
    *("custom_output_type", "streaming", "stream_usage", "disable_streaming", "reuse_client", "max_attempt_number"),
    *("wait_exponential_jitter", "exponential_jitter_params", "num_workers"),
}
# Attributes in which composed models store their parts.
_PARTS = ("bound", "first", "middle", "last", "llm")
# Packages whose functions are identified by their path: a user's function could change under the same path.
_FRAMEWORKS = ("langchain", "langchain_core", "llama_index")


def model_identity(model: Any) -> str | None:
    """The class of a model, its model name, and a hash of the settings that may affect replies, without secrets.

    None if the model does not expose its name, or a setting is an object that cannot be described. Settings that are
    None are ignored, so that a new release of a package, which adds settings, does not change the identity.
    """
    part = next((part for part in parts_of(model) if _model_name(part) is not None), None)
    if part is None:
        return None
    try:
        described = _described(model)
    except TypeError:
        return None
    return f"{path_of(type(part))}({_model_name(part)}) {digest_of([described, sorted(_addresses(model))])}"


def plain_settings(settings: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The settings of a model that may affect its replies or vectors, without secrets."""
    try:
        described = as_json(settings, _described)
    except TypeError as error:
        raise ExperimentError(f"a setting of {model!r} must be a plain value, got a {error}") from error
    return {name: part for name, part in described.items() if part is not None}


def path_of(value: Any) -> str:
    """MODULE.CLASS of a class; the same in every process."""
    return f"{module_of(value)}.{value.__qualname__}"


def _model_name(part: Any) -> str | None:
    """The model name that a part of a model exposes; None if it has none."""
    for name in MODEL_NAMES:
        value = getattr(part, name, None)
        if isinstance(value, str) and value not in NO_NAMES:
            return without_secrets(value)
    return None


def parts_of(model: Any) -> Iterator[Any]:
    """The parts of a model, such as the target of a binding or the steps of a sequence; then the model."""
    for name in _PARTS:
        part = getattr(model, name, None)
        for one in part if isinstance(part, list) else [part]:
            if hasattr(type(one), "model_fields"):
                yield from parts_of(one)
    yield model


def _described(value: Any) -> Any:
    """An object as its class and its settings; raises TypeError if it does not expose them."""
    if isinstance(value, type):
        schema = getattr(value, "model_json_schema", None)
        return [path_of(value), schema() if schema is not None else None]
    if getattr(value, "__qualname__", "<").isidentifier() and value.__module__.partition(".")[0] in _FRAMEWORKS:
        return path_of(value)
    fields = getattr(type(value), "model_fields", None)
    if not isinstance(fields, Mapping):
        raise TypeError(type(value).__name__)
    given = {name: getattr(value, name, None) for name in fields if name not in _IGNORED}
    # Private classes may be renamed in any release of a package.
    kind = next(kind for kind in type(value).__mro__ if not kind.__name__.startswith("_"))
    described = as_json({name: part for name, part in given.items() if part is not None}, _described)
    return {"is": path_of(kind), "with": described}


def _addresses(model: Any) -> Iterator[str]:
    """The base URLs of a model's clients, which may come from the environment instead of a setting."""
    for part in parts_of(model):
        for name in ("root_client", "client", "_client"):
            address = getattr(getattr(part, name, None), "base_url", None)
            if address is not None:
                yield str(address)
