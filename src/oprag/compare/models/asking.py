"""One call of a model, whatever kind of model it is; a failing call is a completion with an error."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from oprag.compare.kinds import descends
from oprag.compare.models.identity import parts_of
from oprag.errors import ExperimentError, ModelError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["Ask", "asking", "asking_local", "retries_itself", "window_of"]

Ask = Callable[[Prompt], Completion]

# What LlamaIndex says of a model that says nothing.
_NO_WINDOW = 3_900


def asking(model: Any) -> Ask:
    """How a model is called.

    Args:
        model: A chat model, LLM or runnable of LangChain, an LLM of LlamaIndex, or a function of the text of a prompt.

    Raises:
        ExperimentError: It is none of them.
    """
    if descends(model, "langchain_core", "Runnable"):
        from oprag.langchain.backend import complete

        return partial(complete, model)
    if descends(model, "llama_index", "LLM"):
        from oprag.llama_index.backend import complete as complete_of_llama_index

        return partial(complete_of_llama_index, model)
    if callable(model) and not isinstance(model, type):
        if inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(type(model).__call__):
            raise ExperimentError("a function that is a model must not be async; calls run in threads", model)
        return partial(_called, model)
    raise ExperimentError(
        "a model must be local, PROVIDER:MODEL, MODULE:FUNCTION, a model of LangChain or LlamaIndex, or a function of "
        f"the text of a prompt, got {describe(model)}",
        model,
    )


def asking_local(settings: Mapping[str, Any]) -> Ask:
    """How the packaged model is called; its server starts with the first call.

    Args:
        settings: What stands in place of its defaults.
    """

    def ask(prompt: Prompt) -> Completion:
        from oprag.compare.providers.local_llm import local_model
        from oprag.langchain.backend import complete

        try:
            client = local_model(**settings)
        except Exception as error:  # noqa: BLE001 - a server that does not start is a failed call
            return Completion(error=error)
        return complete(client, prompt)

    return ask


def _called(function: Callable[[str], Any], prompt: Prompt) -> Completion:
    started = time.perf_counter()
    try:
        reply = function(prompt.text)
    except Exception as error:  # noqa: BLE001 - whatever it raises is recorded
        return Completion(error=error, seconds=time.perf_counter() - started)
    if isinstance(reply, Completion):
        return reply
    seconds = time.perf_counter() - started
    if isinstance(reply, str):
        return Completion(str(reply), seconds=seconds)
    message = f"a function that is a model must give a string or a Completion, got {describe(reply)}"
    return Completion(error=ModelError(message, reply), seconds=seconds)


def retries_itself(model: Any) -> bool:
    """Whether the client of a model makes failed calls again by itself."""
    for part in parts_of(model):
        if getattr(part, "max_attempt_number", 1) > 1:
            return True
        # Where it is None, clients have a number of their own.
        if "max_retries" in getattr(type(part), "model_fields", ()) and part.max_retries != 0:
            return True
    return False


def window_of(model: Any) -> int | None:
    """How many tokens a model can read, None where it does not say."""
    for part in parts_of(model):
        profile = getattr(part, "profile", None)
        if isinstance(profile, Mapping) and type(profile.get("max_input_tokens")) is int:
            return int(profile["max_input_tokens"])
    if descends(model, "llama_index", "LLM"):
        window = model.metadata.context_window
        return window if window != _NO_WINDOW else None
    return None
