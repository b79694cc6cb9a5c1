"""Wrap LlamaIndex embedding models as an `oprag.Embedder`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from oprag.embedding.embedder import WrappedEmbedder, as_wrapped

__all__ = ["LlamaIndexEmbedder", "as_embedder"]


class LlamaIndexEmbedder(WrappedEmbedder):
    """An `Embedder` that wraps a LlamaIndex embedding model, sync and async."""

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return [self.embeddings.get_query_embedding(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return self.embeddings.get_text_embedding_batch(list(texts))

    async def aembed_questions(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_questions`."""
        return await asyncio.gather(*map(self.embeddings.aget_query_embedding, texts))

    async def aembed_documents(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_documents`."""
        return await self.embeddings.aget_text_embedding_batch(list(texts))


def as_embedder(embed_model: Any) -> Any:
    """Wrap a LlamaIndex embedding model as an `oprag.Embedder`; return an `Embedder` unchanged.

    Args:
        embed_model: A LlamaIndex embedding model, or an `oprag.Embedder`.

    Raises:
        OptionError: The object cannot embed texts.
    """
    wrap = LlamaIndexEmbedder if isinstance(embed_model, BaseEmbedding) else None
    return as_wrapped(embed_model, wrap, "embed_model must be a LlamaIndex embedding model")
