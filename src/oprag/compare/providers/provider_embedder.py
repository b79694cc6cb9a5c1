"""Embedders by name: the packaged embedder, or any that LangChain supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from oprag.compare.providers.identity import plain_settings
from oprag.compare.providers.names import LOCAL
from oprag.embedding.embedder import Embedder
from oprag.embedding.identity import digest_of
from oprag.embedding.question_vectors import QuestionVectors
from oprag.embedding.static import local_embedder
from oprag.errors import EmbeddingError, MissingExtraError, OpragError, OptionError
from oprag.masking import describe, reason

__all__ = ["ProviderEmbedder", "embedder_of"]


@cache
def embedder_of(name: str) -> Embedder:
    """Load an embedder by name, "local" or PROVIDER:MODEL; loaded once per process."""
    return local_embedder() if name == LOCAL else ProviderEmbedder(name)


class ProviderEmbedder:
    """PROVIDER:MODEL of LangChain's `init_embeddings`; embeds each question once, and shortens errors to one line."""

    def __init__(self, name: str, feature: str | None = None, **settings: Any) -> None:
        self._given_name = name
        self._embedder = _load(name, feature or f"--embeddings {name}", settings)
        self._questions = QuestionVectors(self._embedder, None)
        # An embedder that does not expose its settings has a name that is only valid in this process.
        persistent = self._embedder.persistent
        self.name: str = self._embedder.name if persistent else f"{name} {digest_of(plain_settings(settings, name))}"

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._run(self._questions.of, texts)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._run(self._embedder.embed_documents, texts)

    def _run(self, embed: Any, texts: Sequence[str]) -> Any:
        try:
            return embed(texts)
        except OpragError:
            raise
        except Exception as error:
            raise EmbeddingError(
                f"the embeddings {self._given_name!r} failed: {reason(error)}", self._given_name
            ) from error


def _load(name: str, feature: str, settings: Mapping[str, Any]) -> Any:
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        raise OptionError(f"embeddings must be {LOCAL} or PROVIDER:MODEL, got {describe(name)}", name)
    try:
        from langchain.embeddings import init_embeddings

        from oprag.langchain.embedder import as_embedder
    except ImportError as error:
        raise MissingExtraError(feature, "langchain") from error
    try:
        return as_embedder(init_embeddings(name, **settings))
    except Exception as error:
        raise OptionError(f"cannot use the embeddings {name!r}: {reason(error)}", name) from error
