"""Chat models by name, the packaged model or any that LangChain supports: how they are loaded and called."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oprag._internal.masking import error_text, reason, shown
from oprag.compare.providers.local_model import local_client, local_model
from oprag.compare.providers.names import LOCAL, client_settings
from oprag.errors import MissingExtraError, ModelError, OptionError
from oprag.methods.model_calls import Completion, Prompt
from oprag.options import check_names

__all__ = ["check_local_settings", "complete_or_show", "load_chat_model"]

# Its settings are arguments of a factory function instead of fields of the model class.
_UNCHECKED_PROVIDER = "huggingface:"
# Settings that the packaged model has already.
_FIXED = {"base_url", "openai_api_base", "model", "model_name", "api_key", "openai_api_key", "max_completion_tokens"}
_SHOWN = 200  # characters of a reply
_LATEST = threading.local()


def load_chat_model(name: str, settings: Mapping[str, Any], *, feature: str) -> Any:
    """Load a LangChain chat model by name, "local" or PROVIDER:MODEL, for a feature that a message names.

    Raises:
        OptionError: A setting is unknown, which most models would silently ignore, or the model cannot be loaded.
        MissingExtraError: A required package is not installed.
    """
    if name == LOCAL:
        check_local_settings(settings)
        return local_model(**settings)
    if not name.strip():
        raise OptionError("the model name is empty; use PROVIDER:MODEL", name)
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingExtraError(feature, "langchain") from error
    given = client_settings(name, settings)
    if "base_url" in given and name.startswith("openai:"):
        given = {"stream_usage": True, **given}
    try:
        model = init_chat_model(name, **given)
    except Exception as error:
        raise OptionError(f"cannot use the model {name!r}: {reason(error)}", name) from error
    _check_settings(name, given, model)
    return model


def check_local_settings(settings: Mapping[str, Any]) -> None:
    """Reject settings that the packaged model does not support, without starting it."""
    for name in settings.keys() & _FIXED:
        raise OptionError(f"{name} is only valid with PROVIDER:MODEL, not with {LOCAL}", settings[name])
    _check_settings(LOCAL, settings, local_client("http://127.0.0.1", "-", **settings))


def _check_settings(name: str, settings: Mapping[str, Any], model: Any) -> None:
    """Reject unknown settings, unless the model accepts any."""
    kind = type(model)
    fields = getattr(kind, "model_fields", None)
    if fields is None or kind.model_config.get("extra") == "allow" or name.startswith(_UNCHECKED_PROVIDER):
        return
    aliases = [field.validation_alias for field in fields.values()]
    # A setting of `init_chat_model`, and the fields of the model by all their names.
    known = {"model_provider", *fields}
    known |= {one for alias in aliases for one in getattr(alias, "choices", [alias]) if isinstance(one, str)}
    check_names(settings, sorted(known), what=f"setting of {name}")


def complete_or_show(model: Any, prompt: Prompt) -> Completion:
    """Call a LangChain model; if its client cannot read the reply, the error shows the status and the start of it."""
    from oprag.langchain.backend import complete

    # The client of OpenAI's protocol, which many servers speak in their own way.
    hooks = getattr(getattr(getattr(model, "root_client", None), "_client", None), "event_hooks", None)
    if hooks is not None and _remember not in hooks["response"]:
        hooks["response"].append(_remember)
    _LATEST.response = None
    completion = complete(model, prompt)
    error, response = completion.error, _LATEST.response
    if error is None or response is None or _is_told(error, response):
        return completion
    came, status = shown(response.text, _SHOWN, end=False), response.status_code
    explained = ModelError(f"the server sent status {status} and {came!r}: {error_text(error)}", status)
    explained.__cause__ = error
    return replace(completion, error=explained)


def _is_told(error: BaseException, response: Any) -> bool:
    """Whether the client's error has the status and, as with bodies of JSON, what the server said."""
    if not response.is_error or str(response.status_code) not in str(error):
        return False
    try:
        json.loads(response.text)
    except ValueError:
        return False
    return True


def _remember(response: Any) -> None:
    response.read()
    _LATEST.response = response
