"""Wrap the embedding model of a framework as an `oprag.Embedder`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from oprag.embedding.embedder import WrappedEmbedder
from oprag.errors import OptionError

__all__ = ["FrameworkEmbedder", "as_framework_embedder"]


class FrameworkEmbedder(WrappedEmbedder):
    """An `Embedder` that wraps the embedding model of a framework, sync and async.

    Args:
        embeddings: The embedding model.
        question: The name of its method that embeds a question; that of the async method begins with "a".
        documents: The name of its method that embeds a list of texts.
    """

    def __init__(self, embeddings: Any, question: str, documents: str) -> None:
        super().__init__(embeddings)
        self._question = question
        self._documents = documents

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return list(map(getattr(self.embeddings, self._question), texts))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return getattr(self.embeddings, self._documents)(list(texts))

    async def aembed_questions(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_questions`."""
        return await asyncio.gather(*map(getattr(self.embeddings, f"a{self._question}"), texts))

    async def aembed_documents(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_documents`."""
        return await getattr(self.embeddings, f"a{self._documents}")(list(texts))


def as_framework_embedder(embeddings: Any, kind: type[Any], rule: str, question: str, documents: str) -> Any:
    """Wrap an embedding model of this class; return an `Embedder` unchanged.

    Raises:
        OptionError: The object is neither; the message begins with `rule`.
    """
    if isinstance(embeddings, kind):
        return FrameworkEmbedder(embeddings, question, documents)
    if hasattr(embeddings, "embed_questions") and not isinstance(embeddings, type):
        return embeddings
    raise OptionError(f"{rule}, got {type(embeddings).__name__}", embeddings)
