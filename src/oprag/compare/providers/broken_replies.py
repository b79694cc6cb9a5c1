"""Errors about replies that a client cannot read, with the status and the start of what the server sent."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

from oprag.errors import ModelError
from oprag.langchain.backend import complete
from oprag.masking import error_text, start_of
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["complete_or_show"]

_SHOWN = 200  # characters
_LATEST = threading.local()


def complete_or_show(model: Any, prompt: Prompt) -> Completion:
    """Call a LangChain model; if its client cannot read the reply, the error shows what came."""
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
