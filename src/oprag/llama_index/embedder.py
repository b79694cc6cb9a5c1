"""Wrap LlamaIndex embedding models as an `oprag.Embedder`."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from oprag.adapters.embedder import as_framework_embedder

__all__ = ["as_embedder"]


def as_embedder(embed_model: Any) -> Any:
    """Wrap a LlamaIndex embedding model as an `oprag.Embedder`; return an `Embedder` unchanged.

    Args:
        embed_model: A LlamaIndex embedding model, or an `oprag.Embedder`.

    Raises:
        OptionError: The object cannot embed texts.
    """
    rule = "embed_model must be a LlamaIndex embedding model"
    return as_framework_embedder(embed_model, BaseEmbedding, rule, "get_query_embedding", "get_text_embedding_batch")
