"""LlamaIndex's embedding models as an `oprag.Embedder`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from oprag.checks import check_text
from oprag.errors import OptionError
from oprag.vectors.identity import identity_of

__all__ = ["LlamaIndexEmbedder", "as_embedder"]


@dataclass(frozen=True)
class LlamaIndexEmbedder:
    """An `Embedder` around a LlamaIndex embedding model, sync and async.

    Attributes:
        model: What embeds.
        name: The identity of the model and its settings.
        lasting: Whether the name means the same in another process.
    """

    model: BaseEmbedding
    name: str
    lasting: bool = True

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return [self.model.get_query_embedding(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self.model.get_text_embedding_batch(list(texts))

    async def aembed_questions(self, texts: Sequence[str]) -> Any:
        """As `embed_questions`, async."""
        return await asyncio.gather(*map(self.model.aget_query_embedding, texts))

    async def aembed_documents(self, texts: Sequence[str]) -> Any:
        """As `embed_documents`, async."""
        return await self.model.aget_text_embedding_batch(list(texts))


def as_embedder(embeddings: Any, name: str | None = None) -> Any:
    """A LlamaIndex embedding model as an `oprag.Embedder`; one of those as it is.

    Args:
        embeddings: A LlamaIndex embedding model, or an `oprag.Embedder`.
        name: What the model and its settings are called; vectors that are kept under one name must come from one model.
            By default the class, with the settings that may change a vector.

    Raises:
        OptionError: It cannot embed.
    """
    if name is not None:
        check_text("name", name)
    if hasattr(embeddings, "embed_questions") and not isinstance(embeddings, type):
        if name not in (None, embeddings.name):
            raise OptionError(f"this embedder has the name {embeddings.name!r} already, got {name!r}", name)
        return embeddings
    if not isinstance(embeddings, BaseEmbedding):
        raise OptionError(
            f"embeddings must be a LlamaIndex embedding model, got {type(embeddings).__name__}", embeddings
        )
    return LlamaIndexEmbedder(embeddings, *((name,) if name is not None else identity_of(embeddings)))
