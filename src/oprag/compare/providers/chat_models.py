"""Chat models by name, the packaged model or any that LangChain supports: how they are loaded and called."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oprag.compare.providers.local_model import local_client, local_model
from oprag.compare.providers.names import LOCAL
from oprag.errors import MissingExtraError, ModelError, OptionError
from oprag.masking import error_text, reason, start_of
from oprag.methods.model_calls import Completion, Prompt
from oprag.options import check_names

__all__ = ["check_local_settings", "complete_or_show", "load_chat_model"]

# Its settings are arguments of a factory function instead of fields of the model class.
_UNCHECKED_PROVIDER = "huggingface:"
_SHOWN = 200  # characters of a reply
_LATEST = threading.local()


def load_chat_model(name: str, settings: Mapping[str, Any], *, feature: str, timeout: float | None = None) -> Any:
    """Load a LangChain chat model by name.

    Args:
        name: "local" or PROVIDER:MODEL.
        settings: Its settings.
        feature: Start of the message if a package is missing.
        timeout: Seconds that a call may take, if the model has this setting and it is not given.

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
    given = dict(settings)
    if "base_url" in given and name.startswith("openai:"):
        # Self-hosted servers rarely need a key, but the client requires one.
        key = {} if "openai_api_key" in given else {"api_key": os.environ.get("OPENAI_API_KEY") or "-"}
        given = {**key, "stream_usage": True, **given}

    def make(**more: Any) -> Any:
        try:
            return init_chat_model(name, **given, **more)
        except Exception as error:
            raise OptionError(f"cannot use the model {name!r}: {reason(error)}", name) from error

    model = make()
    known = _check_settings(name, given, model)
    # The model creates its HTTP clients in its constructor, so settings cannot be changed afterwards.
    return make(timeout=timeout) if timeout and "timeout" in known - given.keys() else model


def check_local_settings(settings: Mapping[str, Any]) -> None:
    """Reject settings that the packaged model does not support, without starting it."""
    for fixed in ("base_url", "openai_api_base", "model", "model_name", "api_key", "openai_api_key"):
        if fixed in settings:
            raise OptionError(f"{fixed} is only valid with PROVIDER:MODEL, not with {LOCAL}", settings[fixed])
    _check_settings(LOCAL, settings, local_client("http://127.0.0.1", "-", **settings))


def _check_settings(name: str, settings: Mapping[str, Any], model: Any) -> set[str]:
    """Reject unknown settings; returns the known ones, if the model does not accept any."""
    kind = type(model)
    fields = getattr(kind, "model_fields", None)
    if fields is None or kind.model_config.get("extra") == "allow" or name.startswith(_UNCHECKED_PROVIDER):
        return set()
    aliases = [field.validation_alias for field in fields.values()]
    # A setting of `init_chat_model`, and the fields of the model by all their names.
    known = {"model_provider", *fields}
    known |= {one for alias in aliases for one in getattr(alias, "choices", [alias]) if isinstance(one, str)}
    check_names(settings, sorted(known), what=f"setting of {name}")
    return known


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
    _LATEST.response = None
    if error is None or response is None or _is_told(error, response):
        return completion
    came = start_of(response.text, _SHOWN)
    shown = ModelError(
        f"the server sent status {response.status_code} and {came!r}: {error_text(error)}", response.status_code
    )
    shown.__cause__ = error
    return replace(completion, error=shown)


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
