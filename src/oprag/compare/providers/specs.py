"""Models and embedders of an experiment: their specifications, and a common way to use all kinds of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from oprag._internal.lazy import import_extra
from oprag._internal.masking import describe, reason
from oprag.compare.providers.chat_models import Model, open_chat_model
from oprag.compare.providers.identity import (
    LOCAL,
    client_settings,
    digest_of,
    identity_of_name,
    identity_of_object,
    is_instance,
    is_loopback,
)
from oprag.compare.validation import StrictModel, String, Text, pydantic
from oprag.embedding.embedder import DualEncoder, Embedder, WrappedEmbedder
from oprag.errors import EmbeddingError, ExperimentError, OptionError
from oprag.index.tokenizers import HUGGINGFACE, NamedTokenizer, tokenizer_named
from oprag.methods.prompts import Prompt

__all__ = ["EmbedderSpec", "ExperimentEmbedder", "ModelSpec", "ProviderSpec", "load_embedder"]


class ProviderSpec(StrictModel, extra="allow"):
    """The specification of a model or embedder: the model to use, its name, and all other keys as its settings."""

    use: Any
    name: Text | None = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _as_table(cls, given: Any) -> Any:
        """Convert a name or an object to a mapping with the key `use`."""
        return given if isinstance(given, cls | dict) else {"use": given}

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

    def open(self, called: str | None = None, *, planned: bool = False) -> Model:
        """Open the model; the packaged model is only started by its first call.

        Args:
            called: Name of the model in the experiment, in place of a missing `name`.
            planned: Whether it is for a plan, which does not call models, and does not load those given by name.

        Raises:
            OptionError: The model or one of its settings is unknown.
            ExperimentError: It needs a name.
            MissingExtraError: A required package is not installed.
        """
        if not isinstance(self.use, str):
            return Model(complete=_call_of(self.use), identity=identity_of_object(self.use, self.name or called))
        return open_chat_model(self.use, self.settings, planned=planned)


def _call_of(model: Any) -> Callable[[Prompt], Any]:
    """A function that calls the model."""
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
    return lambda prompt: model(prompt.text)


@dataclass(frozen=True, eq=False)
class ExperimentEmbedder:
    """An `oprag.Embedder` with its tokenizer and prefixes."""

    name: str  # identity without secrets, the same in every process; embedders with equal names share cached vectors
    paid: bool  # whether embedding may cost money
    _embedder: Any = field(repr=False)  # None in a plan
    _prefixes: tuple[str, str] = field(repr=False)
    _tokenizer: str = field(repr=False)

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension); the question prefix is prepended to each text."""
        return self._embedder.embed_questions([self._prefixes[0] + text for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension); the document prefix is prepended to each text."""
        return self._embedder.embed_documents([self._prefixes[1] + text for text in texts])

    @cached_property
    def tokenizer(self) -> NamedTokenizer:
        """The tokenizer of the embedder, loaded on first use."""
        return tokenizer_named(self._tokenizer)


class EmbedderSpec(ProviderSpec):
    """An embedder of an experiment; if given by name, it can be sent to another process.

    Attributes:
        use: "local" for the packaged embedder; PROVIDER:MODEL, as for LangChain's `init_embeddings`; an
            `oprag.Embedder`; or a LangChain or LlamaIndex embeddings object.
        name: Name under which vectors are cached if the embedder does not expose its model name; each model needs its
            own name. By default the name in the experiment.
        question_prefix: Prefix of each question, such as BGE's instruction.
        document_prefix: Prefix of each document.
        tokenizer: Tokenizer for splitting documents and counting tokens: "local", "huggingface:PATH" or
            "tiktoken:ENCODING". By default that of an embedder "huggingface:PATH", else of the packaged embedder.
        paid: Whether embedding may cost money, in which case a plan does not use the embedder. By default True for
            PROVIDER:MODEL unless known to run on this machine, and for LangChain and LlamaIndex embeddings objects.
        **others: Settings of an embedder given by name.

    Raises:
        ExperimentError: There are settings for an embedder that is not given by name, or a value is invalid.
    """

    use: Any = LOCAL
    question_prefix: String = ""
    document_prefix: String = ""
    tokenizer: String | None = None
    paid: pydantic.StrictBool | None = None

    def __init__(self, /, use: Any = LOCAL, name: str | None = None, **others: Any) -> None:
        super().__init__(use=use, name=name, **others)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # as in `StrictModel`

    def open(self, called: str | None = None, *, planned: bool = False) -> ExperimentEmbedder:
        """Open the embedder; weights are loaded when the first text is embedded.

        Args:
            called: Name of the embedder in the experiment, in place of a missing `name`.
            planned: Whether it is for a plan, for which an embedder that costs money only counts tokens.

        Raises:
            OptionError: The embedder or one of its settings is unknown.
            ExperimentError: It is not an embedder, or needs a name.
            MissingExtraError: A required package is not installed.
        """
        prefixes = (self.question_prefix, self.document_prefix)
        embedder = None if planned and self.paid is not False and self.may_cost else self._loaded()
        wrapped = isinstance(embedder, WrappedEmbedder)
        if wrapped:
            name = identity_of_object(self.use, self.name or called)
        else:
            name = identity_of_name(self.use, self.settings) if embedder is None else embedder.name
        of_hub = isinstance(self.use, str) and self.use.startswith(f"{HUGGINGFACE}:")
        # An embeddings object of a framework may call any service.
        may_cost = self.may_cost or wrapped
        return ExperimentEmbedder(
            name=name + (f" prefixes {digest_of(prefixes)}" if any(prefixes) else ""),
            paid=may_cost if self.paid is None else self.paid,
            _embedder=embedder,
            _prefixes=prefixes,
            _tokenizer=self.tokenizer or (self.use if of_hub else LOCAL),
        )

    def _loaded(self) -> Any:
        """An `oprag.Embedder`."""
        given = self.use
        if given == LOCAL and self.settings:
            raise ExperimentError(f"{LOCAL} has no settings, got {', '.join(self.settings)}", given)
        if isinstance(given, str):
            return load_embedder(given, self.settings)
        wrap: Callable[..., Any]
        if is_instance(given, "llama_index", "BaseEmbedding"):
            from oprag.llama_index.embeddings import as_embedder as wrap
        elif hasattr(given, "embed_documents") and not isinstance(given, type):
            from oprag.langchain.embeddings import as_embedder as wrap
        else:
            raise ExperimentError(
                f"an embedder must be {LOCAL}, PROVIDER:MODEL, an oprag.Embedder, or LangChain or LlamaIndex "
                f"embeddings, got {describe(given)}",
                given,
            )
        return wrap(given)


def load_embedder(name: str, settings: Mapping[str, Any]) -> Embedder:
    """Load an embedder by name, "local" or PROVIDER:MODEL of LangChain's `init_embeddings`."""
    if name == LOCAL:
        from oprag.embedding.static import local_embedder

        return local_embedder()
    if ":" not in name:
        raise OptionError(f"embeddings must be {LOCAL} or PROVIDER:MODEL, got {describe(name)}", name)
    init_embeddings = import_extra("langchain.embeddings", f"The embedder {name!r}", "langchain").init_embeddings
    from oprag.langchain.embeddings import as_embedder

    try:
        embedder = as_embedder(init_embeddings(name, **client_settings(name, settings)))
    except Exception as error:
        raise OptionError(f"cannot use the embeddings {name!r}: {reason(error)}", name) from error

    def embed(with_: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> Any:
        try:
            return with_(texts)
        except Exception as error:
            raise EmbeddingError(f"the embeddings {name!r} failed: {reason(error)}", name) from error

    identity = identity_of_name(name, settings)
    return DualEncoder(identity, partial(embed, embedder.embed_questions), partial(embed, embedder.embed_documents))
