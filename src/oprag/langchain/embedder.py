"""Wrap LangChain embeddings as an `oprag.Embedder`."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from oprag.adapters.embedder import as_framework_embedder

__all__ = ["as_embedder"]


def as_embedder(embeddings: Any) -> Any:
    """Wrap LangChain embeddings as an `oprag.Embedder`; return an `Embedder` unchanged.

    Args:
        embeddings: LangChain's `Embeddings`, or an `oprag.Embedder`.

    Raises:
        OptionError: The object cannot embed texts.
    """
    rule = "embeddings must be LangChain embeddings"
    return as_framework_embedder(embeddings, Embeddings, rule, "embed_query", "embed_documents")
