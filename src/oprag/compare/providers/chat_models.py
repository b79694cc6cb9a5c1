"""Chat models by name: the packaged model, or any model that LangChain supports."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from oprag.compare.providers.local_model import check_local_model, local_client, local_model
from oprag.compare.providers.names import LOCAL
from oprag.errors import MissingExtraError, OptionError
from oprag.masking import reason

__all__ = ["check_local_settings", "load_chat_model"]

# Its settings are arguments of a factory function instead of fields of the model class.
_UNCHECKED_PROVIDER = "huggingface"


def load_chat_model(
    name: str, settings: Mapping[str, Any], *, feature: str, defaults: Mapping[str, Any] | None = None
) -> Any:
    """Load a LangChain chat model by name, with the defaults that it supports.

    Raises an OptionError for unknown settings, which most models would silently ignore, and a MissingExtraError
    whose message starts with the feature.
    """
    if name == LOCAL:
        check_local_settings(settings)
        return local_model(**{**(defaults or {}), **settings})
    if not name.strip():
        raise OptionError("the model name is empty; use PROVIDER:MODEL", name)
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingExtraError(feature, "langchain") from error
    given = dict(settings)
    if "base_url" in given and name.partition(":")[0] == "openai":
        # Self-hosted servers rarely need a key, but the client requires one.
        key = {} if "openai_api_key" in given else {"api_key": os.environ.get("OPENAI_API_KEY") or "-"}
        given = {**key, "stream_usage": True, **given}

    def make(**values: Any) -> Any:
        try:
            return init_chat_model(name, **values)
        except Exception as error:
            raise OptionError(f"cannot use the model {name!r}: {reason(error)}", name) from error

    return _complete(make, name, given, defaults or {})


def check_local_settings(settings: Mapping[str, Any]) -> None:
    """Reject settings that the packaged model does not support, without starting it."""
    check_local_model()
    for fixed in ("base_url", "openai_api_base", "model", "model_name", "api_key", "openai_api_key"):
        if fixed in settings:
            raise OptionError(f"{fixed} is only valid with PROVIDER:MODEL, not with {LOCAL}", settings[fixed])
    _complete(partial(local_client, "http://127.0.0.1", "-"), LOCAL, settings, {})


def _complete(make: Any, name: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Make the model with these settings, plus the defaults that it supports; raises for unknown settings."""
    model = make(**settings)
    known = _setting_names(model) if name.partition(":")[0] != _UNCHECKED_PROVIDER else None
    if known is None:
        return model
    for setting in settings:
        if setting not in known and setting != "model_provider":
            close = difflib.get_close_matches(setting, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its settings are the fields of {type(model).__name__}"
            raise OptionError(f"the model {name!r} has no setting {setting!r}; {hint}", setting)
    missing = {setting: value for setting, value in defaults.items() if setting in known}
    # The model creates its HTTP clients in its constructor, so settings cannot be changed afterwards.
    return make(**{**missing, **settings}) if missing.keys() - settings.keys() else model


def _setting_names(model: Any) -> set[str] | None:
    """The names of the settings that a model supports; None if it accepts any."""
    kind = type(model)
    fields = getattr(kind, "model_fields", None)
    if fields is None or kind.model_config.get("extra") == "allow":
        return None
    aliases = [field.validation_alias for field in fields.values()]
    return {
        *fields,
        *(name for alias in aliases for name in getattr(alias, "choices", [alias]) if isinstance(name, str)),
    }
