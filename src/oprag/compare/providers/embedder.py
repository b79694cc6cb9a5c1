"""Embedders of an experiment: their specification, and embedding and counting with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from oprag.compare.providers.endpoints import is_local, provider_of, with_api_key
from oprag.compare.providers.identity import plain_settings
from oprag.compare.providers.names import (
    EMBEDDING_PROVIDERS,
    LOCAL,
    call_factory,
    find_function,
    function_hint,
    is_instance,
    tokenizer_of,
)
from oprag.compare.providers.spec import ProviderSpec
from oprag.compare.validation import Boolean, String
from oprag.embedding.identity import as_json, digest_of
from oprag.errors import ExperimentError, OptionError
from oprag.masking import describe
from oprag.token_counters import HUGGINGFACE, NamedTokenizer

__all__ = ["EmbedderSpec", "ExperimentEmbedder"]

_SHORT = 6  # digits of a hash, in a table
# Providers whose models run where they are called.
_FREE = ("ollama",)
# Parts of the names of modules whose embeddings run on the machine that they are called on.
_HERE = {
    *("fake", "fastembed", "gpt4all", "huggingface", "instructor", "langchain_core", "langchain_huggingface"),
    *("langchain_ollama", "llamacpp", "llamafile", "mock_embed_model", "model2vec", "ollama", "sentence_transformer"),
}
# Classes of such modules that ask a server which somebody pays for.
_ELSEWHERE = ("Endpoint", "Inference", "API", "Hub")


@dataclass(frozen=True, eq=False)
class ExperimentEmbedder:
    """An `oprag.Embedder`, and the tokens in which it reads."""

    name: str  # its identity, without secrets, the same in every process: equal ones share their vectors
    label: str  # its name in tables
    spends: bool  # whether using it may cost money
    note: str  # for users; empty for most
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
    def named_tokenizer(self) -> NamedTokenizer:
        """Its tokenizer, loaded when it is asked for."""
        return tokenizer_of(self._tokenizer) if isinstance(self._tokenizer, str) else self._tokenizer

    @property
    def tokenizer(self) -> Any:
        """For `split_tokens`."""
        return self.named_tokenizer.tokenizer

    def count_tokens(self, text: str) -> int:
        """The tokens of a text."""
        return self.named_tokenizer.count(text)


class EmbedderSpec(ProviderSpec):
    """An embedder of an experiment; one that is given by its name can go to another process.

    Attributes:
        use: "local", the packaged one; PROVIDER:MODEL, as LangChain's `init_embeddings` takes it;
            "huggingface:PATH", a folder with a model of sentence-transformers or its name in the hub; MODULE:FUNCTION,
            for a function that returns an embedder; an `oprag.Embedder`; or embeddings of LangChain or LlamaIndex.
        name: Name in tables; by default made of `use` and the settings. An embedder that does not say which model it
            is must have a name: vectors are stored under it, so another model must have another name.
        api_key_env: Environment variable with the API key, as in `ModelSpec`.
        question_prefix: Prefix of each question, such as BGE's instruction.
        document_prefix: Prefix of each document.
        tokenizer: Tokenizer that documents are split with, and whose tokens are counted: "local", "huggingface:PATH" or
            "tiktoken:ENCODING". By default the embedder's own if it has one, as the packaged one and those of
            "huggingface:PATH" have; else that of the packaged one.
        spends: Whether using it may cost money; by default True for embedders that do not run on this machine.
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

    _key_providers = EMBEDDING_PROVIDERS - {HUGGINGFACE}

    def __init__(self, /, use: Any = LOCAL, name: str | None = None, **others: Any) -> None:
        super().__init__(use=use, name=name, **others)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # as in `StrictModel`

    def model_post_init(self, context: Any, /) -> None:
        """Refuse settings of an object."""
        super().model_post_init(context)
        if self.settings and (not isinstance(self.use, str) or self.use == LOCAL):
            raise ExperimentError(
                f"settings go with PROVIDER:MODEL, {HUGGINGFACE}:PATH and MODULE:FUNCTION, got "
                f"{', '.join(self.settings)}",
                self.use,
            )

    @property
    def label(self) -> str:
        """Its name in tables."""
        if self.name is not None:
            return self.name
        given = self.use if isinstance(self.use, str) else type(self.use).__name__
        kind, _, model = given.partition(":")
        if kind == HUGGINGFACE and Path(model).is_dir():
            given = f"{kind}:{Path(model).resolve().name}"
        prefixes = [self.question_prefix, self.document_prefix] if self._prefixed else []
        others = [as_json(self.settings, lambda value: type(value).__name__), *prefixes]
        return f"{given}, #{digest_of(others)[:_SHORT]}" if self.settings or prefixes else given

    @property
    def _prefixed(self) -> bool:
        return bool(self.question_prefix or self.document_prefix)

    def _hash(self) -> str:
        said = [self.use, plain_settings(self.settings, self.label), self.name]
        return f"embedder {digest_of([*said, self.question_prefix, self.document_prefix])}"

    @property
    def may_need_key(self) -> bool:
        """Whether opening it may need the key of a provider who is paid."""
        return self.spends is not False and self._paid_provider

    def unopened(self, identity: str) -> ExperimentEmbedder:
        """An embedder for a plan, which counts tokens and cannot embed.

        Args:
            identity: Its identity, as far as it is known.
        """
        return ExperimentEmbedder(
            identity,
            self.label,
            spends=True,
            note="",
            _embedder=None,
            _prefixes=("", ""),
            _tokenizer=self.tokenizer or LOCAL,
        )

    def open(self) -> ExperimentEmbedder:
        """The embedder, whose weights are loaded when something is embedded.

        Raises:
            ExperimentError: The embedder or a setting of it is unknown, or it needs a name.
            MissingExtraError: A package that it needs is not installed.
        """
        try:
            embedder, spends, tokenizer = self._loaded()
        except OptionError as error:
            raise ExperimentError(f"{error}{function_hint(self.use, EMBEDDING_PROVIDERS)}", error.value) from error
        prefixes = (self.question_prefix, self.document_prefix)
        own = self.tokenizer or tokenizer or _own_tokenizer(embedder)
        note = "" if own else "documents are cut and counted by the packaged tokenizer"
        return ExperimentEmbedder(
            name=embedder.name + (f" prefixes {digest_of(prefixes)}" if self._prefixed else ""),
            label=self.label,
            spends=spends if self.spends is None else self.spends,
            note=note,
            _embedder=embedder,
            _prefixes=prefixes,
            _tokenizer=own or LOCAL,
        )

    def _loaded(self) -> tuple[Any, bool, str]:
        """An `oprag.Embedder`, whether it may cost money, and the name of its own tokenizer, if it has one."""
        given = self.use
        if not isinstance(given, str):
            return self._of_object(given)
        if given == LOCAL:
            from oprag.embedding.static import local_embedder

            return local_embedder(), False, LOCAL
        kind, _, model = given.partition(":")
        if kind == HUGGINGFACE and model.strip():
            from oprag.compare.providers.huggingface_embedder import HuggingFaceEmbedder

            return HuggingFaceEmbedder(model, self.settings), False, given
        function = find_function(given, EMBEDDING_PROVIDERS)
        if function is not None:
            return self._of_object(call_factory(given, function, self.settings), f", {given}")
        from oprag.compare.providers.provider_embedder import ProviderEmbedder

        settings = with_api_key(given, self.settings, self.api_key_env)
        embedder = ProviderEmbedder(given, f"The embedder {given!r}", **settings)
        if not embedder.tells_settings:
            embedder.name = f"{given} {digest_of(plain_settings(self.settings, given))}"
        return embedder, self._paid_provider, ""

    @property
    def _paid_provider(self) -> bool:
        """Whether it is PROVIDER:MODEL, and the models do not run on this machine, as far as that is known."""
        if not isinstance(self.use, str) or self.use == LOCAL or self.use.partition(":")[0] == HUGGINGFACE:
            return False
        if find_function(self.use, EMBEDDING_PROVIDERS) is not None:
            return False
        if self.addresses:
            return not all(map(is_local, self.addresses))
        return provider_of(self.use, self.settings) not in _FREE

    def _of_object(self, given: Any, maker: str = "") -> tuple[Any, bool, str]:
        """The same of an object that embeds, which a function may have made."""
        if isinstance(given, type):
            raise _no_embedder(given)
        if hasattr(given, "embed_questions") and hasattr(given, "embed_documents"):
            # The packaged one may be given as an object as well.
            from oprag.embedding.static import LocalEmbedder

            if not isinstance(getattr(given, "name", None), str):
                raise ExperimentError(f"an oprag.Embedder must have a name, its identity; got {describe(given)}", given)
            return given, False, LOCAL if isinstance(given, LocalEmbedder) else ""
        wrap: Callable[..., Any]
        if is_instance(given, "llama_index", "BaseEmbedding"):
            from oprag.llama_index.embedder import as_embedder as wrap
        elif hasattr(given, "embed_query") and hasattr(given, "embed_documents"):
            from oprag.langchain.embedder import as_embedder as wrap
        else:
            raise _no_embedder(given)
        embedder = wrap(given)
        if not embedder.lasting:
            kind = f"{type(given).__module__}.{type(given).__qualname__}"
            if self.name is None:
                raise ExperimentError(
                    f"a {type(given).__name__} does not say which model it is; give it a name of its own, under which "
                    "its vectors are kept",
                    given,
                )
            told = f" {digest_of(plain_settings(self.settings, self.name))}" if self.settings else ""
            embedder = wrap(given, f"{kind}({self.name}{maker}){told}")
        return embedder, not _runs_here(given), ""


def _own_tokenizer(embedder: Any) -> NamedTokenizer | None:
    """The tokenizer that an embedder brings, as `LocalEmbedder` does."""
    tokenizer = getattr(embedder, "tokenizer", None)
    return None if tokenizer is None else NamedTokenizer(f"of {embedder.name}", tokenizer)


def _with(prefix: str, texts: Sequence[str]) -> Sequence[str]:
    return [prefix + text for text in texts] if prefix else texts


def _no_embedder(given: Any) -> ExperimentError:
    return ExperimentError(
        f"an embedder must be {LOCAL}, PROVIDER:MODEL, {HUGGINGFACE}:PATH, MODULE:FUNCTION, an oprag.Embedder, or "
        f"embeddings of LangChain or LlamaIndex, got {describe(given)}",
        given,
    )


def _runs_here(embeddings: Any) -> bool:
    """Whether embeddings of a framework are known to run on this machine; what does not may cost money."""
    kind = type(embeddings)
    return not _HERE.isdisjoint(kind.__module__.split(".")) and not any(word in kind.__name__ for word in _ELSEWHERE)
