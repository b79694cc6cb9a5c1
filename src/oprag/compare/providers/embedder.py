"""Embedders of an experiment: their specification, embedding and token counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from oprag.compare.providers.identity import path_of, plain_settings
from oprag.compare.providers.names import LOCAL, is_instance, tokenizer_of
from oprag.compare.providers.spec import ProviderSpec
from oprag.compare.validation import String, pydantic
from oprag.embedding.embedder import NamedEmbedder
from oprag.embedding.identity import digest_of
from oprag.errors import ExperimentError, OptionError
from oprag.masking import describe
from oprag.token_counters import HUGGINGFACE, NamedTokenizer

__all__ = ["EmbedderSpec", "ExperimentEmbedder"]


@dataclass(frozen=True, eq=False)
class ExperimentEmbedder:
    """An `oprag.Embedder` with its tokenizer and prefixes."""

    name: str  # identity without secrets, the same in every process; embedders with equal names share cached vectors
    paid: bool  # whether embedding may cost money
    _embedder: Any = field(repr=False)
    _prefixes: tuple[str, str] = field(repr=False)
    _tokenizer: str | NamedTokenizer = field(repr=False)

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension); the question prefix is prepended to each text."""
        return self._embedder.embed_questions(_prefixed(self._prefixes[0], texts))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension); the document prefix is prepended to each text."""
        return self._embedder.embed_documents(_prefixed(self._prefixes[1], texts))

    @cached_property
    def tokenizer(self) -> NamedTokenizer:
        """The tokenizer of the embedder, loaded on first use."""
        return tokenizer_of(self._tokenizer) if isinstance(self._tokenizer, str) else self._tokenizer


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
            "tiktoken:ENCODING". By default the tokenizer of the embedder, if it has one (the packaged embedder and
            "huggingface:PATH" do), else the tokenizer of the packaged embedder.
        paid: Whether embedding may cost money, in which case a plan does not use the embedder. By default True for
            PROVIDER:MODEL unless known to run on this machine, and for LangChain and LlamaIndex embeddings objects.
        **others: Settings of an embedder given by name.

    Raises:
        ExperimentError: There are settings for an embedder that is not given by name, the name is empty, a prefix is
            not a string, or `paid` is neither True nor False.
    """

    use: Any = LOCAL
    question_prefix: String = ""
    document_prefix: String = ""
    tokenizer: String | None = None
    paid: pydantic.StrictBool | None = None

    def __init__(self, /, use: Any = LOCAL, name: str | None = None, **others: Any) -> None:
        super().__init__(use=use, name=name, **others)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # as in `StrictModel`

    def _hash(self) -> str:
        parts = [self.use, plain_settings(self.settings, self.use), self.name]
        return f"embedder {digest_of([*parts, self.question_prefix, self.document_prefix])}"

    def unopened(self, identity: str) -> ExperimentEmbedder:
        """An embedder for a plan: it counts tokens but cannot embed.

        Args:
            identity: The identity of the embedder, as far as it is known.
        """
        return ExperimentEmbedder(
            identity, paid=True, _embedder=None, _prefixes=("", ""), _tokenizer=self.tokenizer or LOCAL
        )

    def open(self) -> ExperimentEmbedder:
        """Open the embedder; weights are loaded when the first text is embedded.

        Raises:
            ExperimentError: The embedder or one of its settings is unknown, or it needs a name.
            MissingExtraError: A required package is not installed.
        """
        try:
            embedder = self._loaded()
        except OptionError as error:
            raise ExperimentError(str(error), error.value) from error
        prefixes = (self.question_prefix, self.document_prefix)
        # An embeddings object of a framework may call any service.
        may_cost = self.may_cost or isinstance(embedder, NamedEmbedder)
        return ExperimentEmbedder(
            name=embedder.name + (f" prefixes {digest_of(prefixes)}" if any(prefixes) else ""),
            paid=may_cost if self.paid is None else self.paid,
            _embedder=embedder,
            _prefixes=prefixes,
            _tokenizer=self.tokenizer or _own_tokenizer(self.use, embedder),
        )

    def _loaded(self) -> Any:
        """An `oprag.Embedder`."""
        given = self.use
        if not isinstance(given, str):
            return self._wrapped(given)
        if given == LOCAL:
            from oprag.embedding.static import local_embedder

            if self.settings:
                raise ExperimentError(f"{LOCAL} has no settings, got {', '.join(self.settings)}", given)
            return local_embedder()
        from oprag.compare.providers.provider_embedder import ProviderEmbedder

        return ProviderEmbedder(given, f"The embedder {given!r}", **self.client_settings)

    def _wrapped(self, given: Any) -> Any:
        """Convert an embeddings object to an `oprag.Embedder`."""
        is_model = not isinstance(given, type)
        if is_model and hasattr(given, "embed_questions") and hasattr(given, "embed_documents"):
            if not isinstance(getattr(given, "name", None), str):
                raise ExperimentError(
                    f"an oprag.Embedder must have a name that identifies it, got {describe(given)}", given
                )
            return given
        wrap: Callable[..., Any]
        if is_instance(given, "llama_index", "BaseEmbedding"):
            from oprag.llama_index.embedder import as_embedder as wrap
        elif is_model and hasattr(given, "embed_query") and hasattr(given, "embed_documents"):
            from oprag.langchain.embedder import as_embedder as wrap
        else:
            raise ExperimentError(
                f"an embedder must be {LOCAL}, PROVIDER:MODEL, an oprag.Embedder, or LangChain or LlamaIndex "
                f"embeddings, got {describe(given)}",
                given,
            )
        embedder = wrap(given)
        if not embedder.persistent:
            kind = path_of(type(given))
            if self.name is None:
                raise ExperimentError(
                    f"a {type(given).__name__} does not expose its model name; set a unique `name`, under which its "
                    "vectors are stored",
                    given,
                )
            embedder = wrap(given, f"{kind}({self.name})")
        return embedder


def _own_tokenizer(use: Any, embedder: Any) -> str | NamedTokenizer:
    """The tokenizer of an embedder, or that of the packaged embedder if it has none."""
    from oprag.embedding.static import LocalEmbedder

    if isinstance(use, str) and use.startswith(f"{HUGGINGFACE}:"):
        return use
    tokenizer = getattr(embedder, "tokenizer", None)
    if tokenizer is None or isinstance(embedder, LocalEmbedder):
        return LOCAL
    return NamedTokenizer(f"of {embedder.name}", tokenizer)


def _prefixed(prefix: str, texts: Sequence[str]) -> Sequence[str]:
    return [prefix + text for text in texts] if prefix else texts
