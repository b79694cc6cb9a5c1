"""LangChain's embeddings as an `oprag.Embedder`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from oprag.embedding.embedder import NamedEmbedder, named
from oprag.langchain.local_embeddings import LocalEmbeddings

__all__ = ["LangChainEmbedder", "as_embedder"]


class LangChainEmbedder(NamedEmbedder):
    """An `Embedder` around LangChain's `Embeddings`, or anything with its two methods."""

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return [self.embeddings.embed_query(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self.embeddings.embed_documents(list(texts))


class _AsyncLangChainEmbedder(LangChainEmbedder):
    """One around embeddings that are async as well."""

    async def aembed_questions(self, texts: Sequence[str]) -> Any:
        """As `embed_questions`, async."""
        return await asyncio.gather(*map(self.embeddings.aembed_query, texts))

    async def aembed_documents(self, texts: Sequence[str]) -> Any:
        """As `embed_documents`, async."""
        return await self.embeddings.aembed_documents(list(texts))


def as_embedder(embeddings: Any, name: str | None = None) -> Any:
    """LangChain's embeddings as an `oprag.Embedder`; one of those as it is.

    Args:
        embeddings: LangChain's `Embeddings`, or an `oprag.Embedder`.
        name: What the model and its settings are called; vectors that are kept under one name must come from one model.
            By default its class, its model name, and a hash of its settings without secrets.

    Raises:
        OptionError: It cannot embed.
    """
    # Its vectors are arrays before they become the lists that LangChain expects.
    if name is None and type(embeddings) is LocalEmbeddings:
        return embeddings.embedder

    def has(*methods: str) -> bool:
        return not isinstance(embeddings, type) and all(hasattr(embeddings, method) for method in methods)

    asynchronous = has("aembed_query", "aembed_documents")
    kind = _AsyncLangChainEmbedder if asynchronous else LangChainEmbedder
    return named(
        embeddings,
        name,
        kind if has("embed_query", "embed_documents") else None,
        "embeddings must be LangChain embeddings",
    )
