"""The embedder that the command line uses: the local one, or any that LangChain knows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from oprag.cli.indexing import LOCAL
from oprag.embed import Embedder
from oprag.errors import EmbeddingError, MissingExtraError, OpragError, OptionError
from oprag.local import LocalEmbedder
from oprag.retrieval.question_vectors import QuestionVectors

__all__ = ["EmbedderOnDemand", "embedder_of", "local_embedder", "reason"]


@cache
def local_embedder() -> LocalEmbedder:
    """The embedded default, loaded once.

    Raises:
        MissingExtraError: The extra `local` is not installed.
    """
    return LocalEmbedder()


@cache
def embedder_of(name: str) -> Embedder:
    """An embedder by its name, loaded once.

    Args:
        name: "local", or PROVIDER:MODEL as LangChain's `init_embeddings` takes it.

    Raises:
        MissingExtraError: LangChain, or the local embedder, is not installed.
        OptionError: It is no such name, LangChain knows no such provider, or the provider's package or key is missing.
    """
    return local_embedder() if name == LOCAL else _ProviderEmbedder(name)


class EmbedderOnDemand:
    """An embedder that is loaded when something is embedded, which most methods of answering never do."""

    def __init__(self, name: str) -> None:
        self.name = name

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return embedder_of(self.name).embed_questions(texts)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return embedder_of(self.name).embed_documents(texts)


class _ProviderEmbedder:
    """Embeddings of a provider, which is asked for each question once, and whose errors are one line."""

    def __init__(self, name: str) -> None:
        self._typed = name
        self._embedder = _load(name)
        self._questions = QuestionVectors(self._embedder, None)
        # What it is called after its settings holds in this process alone where it does not tell them.
        self.name: str = self._embedder.name if self._embedder.lasting else name

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._asked(self._questions.of, texts)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._asked(self._embedder.embed_documents, texts)

    def _asked(self, embed: Any, texts: Sequence[str]) -> Any:
        try:
            return embed(texts)
        except OpragError:
            raise
        except Exception as error:
            raise EmbeddingError(f"the embeddings {self._typed!r} failed: {reason(error)}", self._typed) from error


def _load(name: str) -> Any:
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        raise OptionError(f"embeddings must be {LOCAL} or PROVIDER:MODEL, got {name!r}", name)
    try:
        from langchain.embeddings import init_embeddings

        from oprag.langchain.embedder import as_embedder
    except ImportError as error:
        raise MissingExtraError(f"--embeddings {name}", "ask") from error
    try:
        return as_embedder(init_embeddings(name))
    except Exception as error:
        raise OptionError(f"cannot use the embeddings {name!r}: {reason(error)}", name) from error


def reason(error: Exception) -> str:
    """What is wrong with a provider's model, in one line."""
    if callable(details := getattr(error, "errors", None)):
        # Some clients check themselves with pydantic, whose first line says nothing but the name of a class.
        return "; ".join(detail["msg"] for detail in details())
    # Some of LangChain's messages go on with pages of links.
    first = str(error).strip().partition("\n")[0]
    return first or type(error).__name__
