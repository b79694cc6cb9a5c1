"""Models of an experiment: their specification, and a common way to call all kinds of models."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from oprag._internal.masking import describe
from oprag.compare.providers.identity import LOCAL, identity_of_name, identity_of_object, is_instance, is_loopback
from oprag.compare.validation import StrictModel, Text, pydantic
from oprag.errors import ExperimentError, ModelError
from oprag.methods.answer import Completion
from oprag.methods.prompts import Prompt

__all__ = ["Model", "ModelSpec", "ProviderSpec", "with_name"]


def with_name(given: Any, name: str) -> Any:
    """A model or embedder specification; its name defaults to the name in the experiment."""
    if isinstance(given, ProviderSpec):
        return given
    return {"name": name, **(given if isinstance(given, Mapping) else {"use": given})}


class ProviderSpec(StrictModel, extra="allow"):
    """The specification of a model or embedder: the model to use, its name, and all other keys as its settings."""

    use: Any
    name: Text | None = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _as_table(cls, given: Any) -> Any:
        """Convert a name or an object to a mapping with the key `use`."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            return {"use": given}
        if "use" not in given:
            raise ExperimentError('it must contain the key use, such as use = "local"', given)
        return dict(given)

    def model_post_init(self, context: Any, /) -> None:
        """Reject settings that would have no effect."""
        super().model_post_init(context)
        if self.settings and not isinstance(self.use, str):
            given, kind = ", ".join(self.settings), type(self.use).__name__
            problem = f"settings are only valid for a name, got {given}; set them on the {kind} instead"
            raise ExperimentError(problem, self.use)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the model or embedder."""
        return self.model_extra or {}

    @property
    def may_cost(self) -> bool:
        """Whether calls may cost money: True for PROVIDER:MODEL unless it runs on this machine."""
        if not isinstance(self.use, str) or self.use == LOCAL:
            return False
        kind, _, model = self.use.partition(":")
        if "base_url" in self.settings:
            return not is_loopback(self.settings["base_url"])
        # Ollama runs models on this machine, except its cloud models.
        return kind not in ("ollama", "huggingface") or model.endswith("cloud")

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # Without the settings, which may contain secrets.
        return ((name, getattr(self, name)) for name in type(self).model_fields)


# Names of the setting that limits the length of a reply, by provider.
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")


@dataclass(frozen=True, eq=False)
class Model:
    """An open model of an experiment. Thread-safe."""

    identity: str  # without secrets, the same in every process; models with equal identities share cached replies
    complete: Callable[[Prompt], Completion] = field(repr=False)  # may raise, or return a completion with an error


class ModelSpec(ProviderSpec):
    """A model of an experiment; if given by name, it can be sent to another process.

    Attributes:
        use: "local" for the packaged model; PROVIDER:MODEL, as for LangChain's `init_chat_model`; a LangChain chat
            model, LLM or runnable; a LlamaIndex LLM; or a function that takes the text of a prompt and returns a string
            or a `Completion`. Failed calls are retried as the client of the model does it.
        name: Name under which replies are cached if the model does not expose its name, such as a function; each model
            needs its own name. By default the name in the experiment.
        **others: Settings of a model given by name, such as `temperature`, `max_tokens` and `max_retries`. A `base_url`
            on this machine gets a placeholder instead of the key of the provider.

    Raises:
        ExperimentError: There are settings for a model that is not given by name, or the name is empty.

    Example:
        >>> ModelSpec("openai:gpt-5-mini", temperature=0).settings
        {'temperature': 0}
    """

    def __init__(self, /, use: Any, name: str | None = None, **others: Any) -> None:
        super().__init__(use=use, name=name, **others)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # as in `StrictModel`

    @property
    def max_reply_tokens(self) -> int | None:
        """Maximum number of tokens of a reply, from the settings; None if not set."""
        limits = (self.settings.get(name) for name in _REPLY_LIMITS)
        return next((limit for limit in limits if type(limit) is int), None)

    def open(self, *, planned: bool = False) -> Model:
        """Open the model; the packaged model is only started by its first call.

        Args:
            planned: Whether it is for a plan, which does not call models, and does not load those given by name.

        Raises:
            OptionError: The model or one of its settings is unknown.
            ExperimentError: It needs a name.
            MissingExtraError: A required package is not installed.
        """
        if not isinstance(self.use, str):
            return Model(identity_of_object(self.use, self.name), _call_of(self.use))
        from oprag.compare.providers.chat_models import (
            LOCAL_NAME,
            LOCAL_SETTINGS,
            check_local_settings,
            complete_or_show,
            load_chat_model,
            local_model,
        )

        if self.use == LOCAL:
            check_local_settings(self.settings)
            identity = identity_of_name(f"{LOCAL}:{LOCAL_NAME}", {**LOCAL_SETTINGS, **self.settings})
            client = {"timeout": None, **self.settings}
            return Model(identity, lambda prompt: complete_or_show(local_model(**client), prompt))
        identity = identity_of_name(self.use, self.settings)
        if planned:
            problem = f"{describe(self.use)} cannot be called in a plan, which does not load models"
            return Model(identity, lambda _: Completion(error=ModelError(problem, self.use)))
        model = load_chat_model(self.use, self.settings, feature=f"The model {self.use!r}")
        return Model(identity, partial(complete_or_show, model))


def _call_of(model: Any) -> Callable[[Prompt], Completion]:
    """A function that calls the model; a failed call returns a completion with an error."""
    if is_instance(model, "langchain_core", "Runnable"):
        from oprag.langchain.backend import complete

        return partial(complete, model)
    if is_instance(model, "llama_index", "LLM"):
        from oprag.llama_index.backend import complete as complete_of_llama_index

        return partial(complete_of_llama_index, model)
    if not callable(model) or isinstance(model, type):
        raise ExperimentError(
            "a model must be local, PROVIDER:MODEL, a LangChain or LlamaIndex model, or a function that takes the text "
            f"of a prompt, got {describe(model)}",
            model,
        )
    if inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(type(model).__call__):
        raise ExperimentError("a model function must not be async, since calls run in threads", model)
    return partial(_called, model)


def _called(function: Callable[[str], Any], prompt: Prompt) -> Completion:
    started = time.perf_counter()
    error: Exception | None = None
    try:
        reply = function(prompt.text)
        if isinstance(reply, Completion):
            return reply
        if isinstance(reply, str):
            return Completion(str(reply), seconds=time.perf_counter() - started)
        error = ModelError(f"a model function must return a string or a Completion, got {describe(reply)}", reply)
    except Exception as raised:  # noqa: BLE001 - any exception is recorded
        error = raised
    return Completion(error=error, seconds=time.perf_counter() - started)
