"""What embeds, by what an experiment calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from oprag.compare.embedders.huggingface import HuggingFaceEmbedder
from oprag.compare.embedders.spending import runs_here
from oprag.compare.kinds import descends
from oprag.compare.models.identity import plain_settings
from oprag.compare.providers import EMBEDDING_PROVIDERS, LOCAL
from oprag.compare.providers.addresses import addresses_of, is_here, provider_of, with_key
from oprag.compare.providers.functions import function_named, made_by
from oprag.embedding.identity import digest_of
from oprag.errors import ExperimentError
from oprag.masking import describe
from oprag.token_counters import HUGGINGFACE

__all__ = ["LoadedEmbedder", "is_paid_provider", "load_embedder"]

# Providers whose models run where they are called.
_FREE = ("ollama",)


class LoadedEmbedder(NamedTuple):
    """What a word or an object means.

    Attributes:
        embedder: An `oprag.Embedder`.
        spends: Whether it may cost money.
        tokenizer: What its own tokenizer is called; empty where it has none that could be had.
    """

    embedder: Any
    spends: bool
    tokenizer: str = ""


def load_embedder(
    given: Any, name: str | None, settings: Mapping[str, Any], api_key_env: str | None = None
) -> LoadedEmbedder:
    """What embeds.

    Args:
        given: What `EmbedderSpec` takes.
        name: What the user calls it, for one that does not say which model it is.
        settings: Of an embedder that is given by a name.
        api_key_env: The environment variable that has its key.

    Raises:
        ExperimentError: There is no such embedder, or it needs a name.
        MissingExtraError: What it needs is not installed.
        OptionError: LangChain knows no such embeddings, or their provider's package or key is missing.
    """
    if not isinstance(given, str):
        return _of_object(given, name, settings)
    if given == LOCAL:
        from oprag.embedding.static import local_embedder

        return LoadedEmbedder(local_embedder(), spends=False, tokenizer=LOCAL)
    kind, _, model = given.partition(":")
    if kind == HUGGINGFACE and model.strip():
        return LoadedEmbedder(HuggingFaceEmbedder(model, settings), spends=False, tokenizer=given)
    function = function_named(given, EMBEDDING_PROVIDERS)
    if function is not None:
        return _of_object(made_by(given, function, settings), name, settings, f", {given}")
    from oprag.compare.providers.embedders import ProviderEmbedder

    embedder = ProviderEmbedder(given, f"The embedder {given!r}", **with_key(given, settings, api_key_env))
    if not embedder.tells_settings:
        embedder.name = f"{given} {digest_of(plain_settings(settings, given))}"
    return LoadedEmbedder(embedder, spends=is_paid_provider(given, settings))


def is_paid_provider(given: Any, settings: Mapping[str, Any]) -> bool:
    """Whether it is PROVIDER:MODEL, and the models do not run on this machine, as far as that is known."""
    if not isinstance(given, str) or given == LOCAL or given.partition(":")[0] == HUGGINGFACE:
        return False
    if function_named(given, EMBEDDING_PROVIDERS) is not None:
        return False
    provider = provider_of(given, settings)
    addresses = addresses_of(settings, provider)
    return not all(map(is_here, addresses)) if addresses else provider not in _FREE


def _of_object(given: Any, name: str | None, settings: Mapping[str, Any], maker: str = "") -> LoadedEmbedder:
    """What an object means that embeds, which a function may have made."""
    if isinstance(given, type):
        raise _no_embedder(given)
    if hasattr(given, "embed_questions") and hasattr(given, "embed_documents"):
        # The packaged one may be given as an object as well.
        from oprag.embedding.static import LocalEmbedder

        if not isinstance(getattr(given, "name", None), str):
            raise ExperimentError(f"an oprag.Embedder must have a name, its identity; got {describe(given)}", given)
        return LoadedEmbedder(given, spends=False, tokenizer=LOCAL if isinstance(given, LocalEmbedder) else "")
    wrap: Callable[..., Any]
    if descends(given, "llama_index", "BaseEmbedding"):
        from oprag.llama_index.embedder import as_embedder as wrap
    elif hasattr(given, "embed_query") and hasattr(given, "embed_documents"):
        from oprag.langchain.embedder import as_embedder as wrap
    else:
        raise _no_embedder(given)
    embedder = wrap(given)
    if not embedder.lasting:
        kind = f"{type(given).__module__}.{type(given).__qualname__}"
        if name is None:
            raise ExperimentError(
                f"a {type(given).__name__} does not say which model it is; give it a name of its own, under which its "
                "vectors are kept",
                given,
            )
        told = f" {digest_of(plain_settings(settings, name))}" if settings else ""
        embedder = wrap(given, f"{kind}({name}{maker}){told}")
    return LoadedEmbedder(embedder, spends=not runs_here(given))


def _no_embedder(given: Any) -> ExperimentError:
    return ExperimentError(
        f"an embedder must be {LOCAL}, PROVIDER:MODEL, {HUGGINGFACE}:PATH, MODULE:FUNCTION, an oprag.Embedder, or "
        f"embeddings of LangChain or LlamaIndex, got {describe(given)}",
        given,
    )
