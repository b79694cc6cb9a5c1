"""LlamaIndex embedding models as an `oprag.Embedder`, and the local embedder as a LlamaIndex embedding model."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import ConfigDict, Field

from oprag.embedding.embedder import FrameworkEmbedder
from oprag.embedding.static import LocalEmbedder, local_embedder
from oprag.errors import OptionError

__all__ = ["LocalEmbedding", "as_embedder"]


def as_embedder(embed_model: Any) -> Any:
    """Wrap a LlamaIndex embedding model as an `oprag.Embedder`; return an `Embedder` unchanged.

    Args:
        embed_model: A LlamaIndex embedding model, or an `oprag.Embedder`.

    Raises:
        OptionError: The object cannot embed texts.
    """
    if isinstance(embed_model, BaseEmbedding):
        return FrameworkEmbedder(embed_model, "get_query_embedding", "get_text_embedding_batch")
    if hasattr(embed_model, "embed_questions") and not isinstance(embed_model, type):
        return embed_model
    got = type(embed_model).__name__
    raise OptionError(f"embed_model must be a LlamaIndex embedding model, got {got}", embed_model)


class LocalEmbedding(BaseEmbedding):
    """A LlamaIndex embedding model that needs no API key, no download and no torch: `oprag.LocalEmbedder`.

    For examples, tests and first tries; a sentence encoder finds more. Vectors have 256 dimensions. All instances share
    one model.

    Raises:
        MissingExtraError: The extra `local` is not installed.

    Example:
        >>> from llama_index.core import Document, VectorStoreIndex
        >>> documents = [Document(text="She left port in May."), Document(text="Bread is baked daily.")]
        >>> index = VectorStoreIndex.from_documents(documents, embed_model=LocalEmbedding())
        >>> index.as_retriever(similarity_top_k=1).retrieve("When did the ship sail?")[0].text
        'She left port in May.'
    """

    # The input may contain keys.
    model_config = ConfigDict(hide_input_in_errors=True)

    model_name: str = Field(default=LocalEmbedder.name, description="Name of the model.")
    embed_batch_size: int = Field(default=256, description="Number of texts to embed at once.", gt=0, le=2048)

    def model_post_init(self, context: Any, /) -> None:
        """Fail at construction without the extra."""
        super().model_post_init(context)
        local_embedder()

    @classmethod
    def class_name(cls) -> str:
        """Name of the class in LlamaIndex's serialization."""
        return "LocalEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return local_embedder().embed_documents(texts).tolist()  # type: ignore[no-any-return]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        # Faster than a thread.
        return self._get_query_embedding(query)
