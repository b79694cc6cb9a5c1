"""Wrap LangChain embeddings as an `oprag.Embedder`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from oprag.embedding.embedder import WrappedEmbedder, as_wrapped
from oprag.langchain.local_embeddings import LocalEmbeddings

__all__ = ["LangChainEmbedder", "as_embedder"]


class LangChainEmbedder(WrappedEmbedder):
    """An `Embedder` that wraps LangChain's `Embeddings`, or any object with its two methods."""

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return [self.embeddings.embed_query(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return self.embeddings.embed_documents(list(texts))


class _AsyncLangChainEmbedder(LangChainEmbedder):
    """An `Embedder` for embeddings that have async methods."""

    async def aembed_questions(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_questions`."""
        return await asyncio.gather(*map(self.embeddings.aembed_query, texts))

    async def aembed_documents(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_documents`."""
        return await self.embeddings.aembed_documents(list(texts))


def as_embedder(embeddings: Any) -> Any:
    """Wrap LangChain embeddings as an `oprag.Embedder`; return an `Embedder` unchanged.

    Args:
        embeddings: LangChain's `Embeddings`, or an `oprag.Embedder`.

    Raises:
        OptionError: The object cannot embed texts.
    """
    # Its vectors are arrays before they become the lists that LangChain expects.
    if type(embeddings) is LocalEmbeddings:
        return embeddings.embedder

    def has(*methods: str) -> bool:
        return not isinstance(embeddings, type) and all(hasattr(embeddings, method) for method in methods)

    asynchronous = has("aembed_query", "aembed_documents")
    kind = _AsyncLangChainEmbedder if asynchronous else LangChainEmbedder
    return as_wrapped(
        embeddings,
        kind if has("embed_query", "embed_documents") else None,
        "embeddings must be LangChain embeddings",
    )
