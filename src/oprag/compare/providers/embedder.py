"""Embedders of an experiment: their specification, embedding and token counting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

from oprag._internal.masking import describe, reason
from oprag.compare.providers.identity import (
    LOCAL,
    client_settings,
    digest_of,
    identity_of_name,
    identity_of_object,
    is_instance,
)
from oprag.compare.providers.model import ProviderSpec
from oprag.compare.validation import String, pydantic
from oprag.embedding.embedder import DualEncoder, Embedder, WrappedEmbedder
from oprag.errors import EmbeddingError, ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.index.tokenizers import HUGGINGFACE, NamedTokenizer, tokenizer_named

__all__ = ["EmbedderSpec", "ExperimentEmbedder", "embedder_of"]


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

    def open(self, *, planned: bool = False) -> ExperimentEmbedder:
        """Open the embedder; weights are loaded when the first text is embedded.

        Args:
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
            name = identity_of_object(self.use, self.name)
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
        if given == LOCAL:
            from oprag.embedding.static import local_embedder

            if self.settings:
                raise ExperimentError(f"{LOCAL} has no settings, got {', '.join(self.settings)}", given)
            return local_embedder()
        if isinstance(given, str):
            return _of_provider(given, self.settings)
        wrap: Callable[..., Any]
        if is_instance(given, "llama_index", "BaseEmbedding"):
            from oprag.llama_index.embedder import as_embedder as wrap
        elif hasattr(given, "embed_documents") and not isinstance(given, type):
            from oprag.langchain.embedder import as_embedder as wrap
        else:
            raise ExperimentError(
                f"an embedder must be {LOCAL}, PROVIDER:MODEL, an oprag.Embedder, or LangChain or LlamaIndex "
                f"embeddings, got {describe(given)}",
                given,
            )
        return wrap(given)


@cache
def embedder_of(name: str) -> Embedder:
    """Load an embedder by name, "local" or PROVIDER:MODEL, once per process."""
    from oprag.embedding.static import local_embedder

    return local_embedder() if name == LOCAL else _of_provider(name, {})


def _of_provider(name: str, settings: Mapping[str, Any]) -> Embedder:
    """PROVIDER:MODEL of LangChain's `init_embeddings`."""
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        raise OptionError(f"embeddings must be {LOCAL} or PROVIDER:MODEL, got {describe(name)}", name)
    try:
        from langchain.embeddings import init_embeddings

        from oprag.langchain.embedder import as_embedder
    except ImportError as error:
        raise MissingExtraError(f"The embedder {name!r}", "langchain") from error
    try:
        embedder = as_embedder(init_embeddings(name, **client_settings(name, settings)))
    except Exception as error:
        raise OptionError(f"cannot use the embeddings {name!r}: {reason(error)}", name) from error

    def embed(with_: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> Any:
        try:
            return with_(texts)
        except OpragError:
            raise
        except Exception as error:
            raise EmbeddingError(f"the embeddings {name!r} failed: {reason(error)}", name) from error

    identity = identity_of_name(name, settings)
    return DualEncoder(identity, partial(embed, embedder.embed_questions), partial(embed, embedder.embed_documents))
