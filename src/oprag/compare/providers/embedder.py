"""Embedders of an experiment: their specification, and embedding and counting with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from oprag.compare.providers.endpoints import with_api_key
from oprag.compare.providers.identity import plain_settings
from oprag.compare.providers.names import (
    EMBEDDING_PROVIDERS,
    LOCAL,
    call_factory,
    function_hint,
    is_instance,
    tokenizer_of,
)
from oprag.compare.providers.spec import ProviderSpec
from oprag.compare.validation import Boolean, String
from oprag.embedding.embedder import NamedEmbedder
from oprag.embedding.identity import digest_of
from oprag.errors import ExperimentError, OptionError
from oprag.masking import describe
from oprag.token_counters import HUGGINGFACE, NamedTokenizer

__all__ = ["EmbedderSpec", "ExperimentEmbedder"]


@dataclass(frozen=True, eq=False)
class ExperimentEmbedder:
    """An `oprag.Embedder`, and the tokens in which it reads."""

    name: str  # its identity, without secrets, the same in every process: equal ones share their vectors
    spends: bool  # whether using it may cost money
    _embedder: Any = field(repr=False)
    _prefixes: tuple[str, str] = field(repr=False)
    _tokenizer: str | NamedTokenizer = field(repr=False)

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension); the prefix of questions is put before each."""
        return self._embedder.embed_questions(_with(self._prefixes[0], texts))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension); the prefix of documents is put before each."""
        return self._embedder.embed_documents(_with(self._prefixes[1], texts))

    @cached_property
    def tokenizer(self) -> NamedTokenizer:
        """Its tokenizer, loaded when it is asked for."""
        return tokenizer_of(self._tokenizer) if isinstance(self._tokenizer, str) else self._tokenizer


class EmbedderSpec(ProviderSpec):
    """An embedder of an experiment; one that is given by its name can go to another process.

    Attributes:
        use: "local", the packaged one; PROVIDER:MODEL, as LangChain's `init_embeddings` takes it;
            "huggingface:PATH", a folder with a model of sentence-transformers or its name in the hub; MODULE:FUNCTION,
            for a function that returns an embedder; an `oprag.Embedder`; or embeddings of LangChain or LlamaIndex.
        name: Name under which the vectors are kept of an embedder that does not say which model it is; another model
            must have another name. By default the name in the experiment.
        api_key_env: Environment variable with the API key, as in `ModelSpec`.
        question_prefix: Prefix of each question, such as BGE's instruction.
        document_prefix: Prefix of each document.
        tokenizer: Tokenizer that documents are split with, and whose tokens are counted: "local", "huggingface:PATH" or
            "tiktoken:ENCODING". By default the embedder's own if it has one, as the packaged one and those of
            "huggingface:PATH" have; else that of the packaged one.
        spends: Whether using it may cost money, so that a plan does not use it. By default True for PROVIDER:MODEL that
            is not known to run on this machine, and for embeddings of LangChain or LlamaIndex.
        **others: Settings of an embedder that is given by its name, or the arguments of a function that returns one.

    Raises:
        ExperimentError: There are settings for an embedder that is not given by its name, an empty name, a prefix that
            is not a string, or `spends` is neither True nor False.
    """

    use: Any = LOCAL
    question_prefix: String = ""
    document_prefix: String = ""
    tokenizer: String | None = None
    spends: Boolean | None = None

    _providers = EMBEDDING_PROVIDERS
    _files = frozenset((HUGGINGFACE,))

    def __init__(self, /, use: Any = LOCAL, name: str | None = None, **others: Any) -> None:
        super().__init__(use=use, name=name, **others)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # as in `StrictModel`

    def _hash(self) -> str:
        said = [self.use, plain_settings(self.settings, self.use), self.name]
        return f"embedder {digest_of([*said, self.question_prefix, self.document_prefix])}"

    def unopened(self, identity: str) -> ExperimentEmbedder:
        """An embedder for a plan, which counts tokens and cannot embed.

        Args:
            identity: Its identity, as far as it is known.
        """
        return ExperimentEmbedder(
            identity, spends=True, _embedder=None, _prefixes=("", ""), _tokenizer=self.tokenizer or LOCAL
        )

    def open(self) -> ExperimentEmbedder:
        """The embedder, whose weights are loaded when something is embedded.

        Raises:
            ExperimentError: The embedder or a setting of it is unknown, or it needs a name.
            MissingExtraError: A package that it needs is not installed.
        """
        try:
            embedder = self._loaded()
        except OptionError as error:
            raise ExperimentError(f"{error}{function_hint(self.use, EMBEDDING_PROVIDERS)}", error.value) from error
        prefixes = (self.question_prefix, self.document_prefix)
        # What a client of a framework asks is not known.
        may_cost = self.may_cost or isinstance(embedder, NamedEmbedder)
        return ExperimentEmbedder(
            name=embedder.name + (f" prefixes {digest_of(prefixes)}" if any(prefixes) else ""),
            spends=may_cost if self.spends is None else self.spends,
            _embedder=embedder,
            _prefixes=prefixes,
            _tokenizer=self.tokenizer or _own_tokenizer(self.use, embedder),
        )

    def _loaded(self) -> Any:
        """An `oprag.Embedder`."""
        given = self.use
        if not isinstance(given, str):
            return self._of_object(given)
        if given == LOCAL:
            from oprag.embedding.static import local_embedder

            if self.settings:
                raise ExperimentError(f"{LOCAL} has no settings, got {', '.join(self.settings)}", given)
            return local_embedder()
        kind, _, model = given.partition(":")
        if kind == HUGGINGFACE and model.strip():
            from oprag.compare.providers.huggingface_embedder import HuggingFaceEmbedder

            return HuggingFaceEmbedder(model, self.settings)
        if self.function is not None:
            return self._of_object(call_factory(given, self.function, self.settings), f", {given}")
        from oprag.compare.providers.provider_embedder import ProviderEmbedder

        settings = with_api_key(given, self.settings, self.api_key_env)
        return ProviderEmbedder(given, f"The embedder {given!r}", **settings)

    def _of_object(self, given: Any, maker: str = "") -> Any:
        """An object that embeds, which a function may have made, as an `oprag.Embedder`."""
        is_model = not isinstance(given, type)
        if is_model and hasattr(given, "embed_questions") and hasattr(given, "embed_documents"):
            if not isinstance(getattr(given, "name", None), str):
                raise ExperimentError(f"an oprag.Embedder must have a name, its identity; got {describe(given)}", given)
            return given
        wrap: Callable[..., Any]
        if is_instance(given, "llama_index", "BaseEmbedding"):
            from oprag.llama_index.embedder import as_embedder as wrap
        elif is_model and hasattr(given, "embed_query") and hasattr(given, "embed_documents"):
            from oprag.langchain.embedder import as_embedder as wrap
        else:
            raise ExperimentError(
                f"an embedder must be {LOCAL}, PROVIDER:MODEL, {HUGGINGFACE}:PATH, MODULE:FUNCTION, an oprag.Embedder, "
                f"or embeddings of LangChain or LlamaIndex, got {describe(given)}",
                given,
            )
        embedder = wrap(given)
        if not embedder.lasting:
            kind = f"{type(given).__module__}.{type(given).__qualname__}"
            if self.name is None:
                raise ExperimentError(
                    f"a {type(given).__name__} does not say which model it is; give it a name of its own, under which "
                    "its vectors are stored",
                    given,
                )
            told = f" {digest_of(plain_settings(self.settings, self.name))}" if self.settings else ""
            embedder = wrap(given, f"{kind}({self.name}{maker}){told}")
        return embedder


def _own_tokenizer(use: Any, embedder: Any) -> str | NamedTokenizer:
    """The tokenizer that an embedder brings, else that of the packaged one."""
    from oprag.embedding.static import LocalEmbedder

    if isinstance(use, str) and use.startswith(f"{HUGGINGFACE}:"):
        return use
    tokenizer = getattr(embedder, "tokenizer", None)
    if tokenizer is None or isinstance(embedder, LocalEmbedder):
        return LOCAL
    return NamedTokenizer(f"of {embedder.name}", tokenizer)


def _with(prefix: str, texts: Sequence[str]) -> Sequence[str]:
    return [prefix + text for text in texts] if prefix else texts
