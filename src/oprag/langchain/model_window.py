"""The context window that a LangChain model tells in its profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from langchain_core.runnables import RunnableConfig

from oprag.methods.window import Window

__all__ = ["window_of"]


def window_of(llm: Any, config: RunnableConfig) -> Window | None:
    """The smallest context window of the models that may be asked; None where none says.

    A profile has the tokens that a model can read, so nothing of them is kept for the reply.
    """
    profiles = (getattr(model, "profile", None) for model in _models(llm, config))
    told = [profile.get("max_input_tokens") for profile in profiles if isinstance(profile, Mapping)]
    known = [tokens for tokens in told if type(tokens) is int and tokens > 0]
    return Window(min(known)) if known else None


def _models(runnable: Any, config: RunnableConfig) -> Iterator[Any]:
    """The models in retries, fallbacks, configurations, and the steps that make an object of a reply."""
    # Wrappers pass on the attributes of what they wrap, so the class is asked.
    if "profile" in getattr(type(runnable), "model_fields", ()):
        yield runnable
        return
    # Imported here, since LangChain loads them only for those who use them.
    from langchain_core.runnables import RunnableParallel, RunnableSequence, RunnableWithFallbacks
    from langchain_core.runnables.base import RunnableBindingBase
    from langchain_core.runnables.configurable import DynamicRunnable

    parts: list[Any] = []
    if isinstance(runnable, DynamicRunnable):
        with suppress(Exception):  # a choice that there is not is an error of the call
            chosen, config = runnable.prepare(config)
            parts = [chosen]
    elif isinstance(runnable, RunnableBindingBase):
        parts = [runnable.bound]
    elif isinstance(runnable, RunnableWithFallbacks):
        parts = list(runnable.runnables)
    elif isinstance(runnable, RunnableSequence):
        parts = runnable.steps
    elif isinstance(runnable, RunnableParallel):
        parts = list(runnable.steps__.values())
    for part in parts:
        yield from _models(part, config)
