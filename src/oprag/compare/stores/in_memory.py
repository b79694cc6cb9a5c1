"""LangChain's store in memory."""

from __future__ import annotations

from typing import Any

from oprag.compare.stores.empty import EmptyStore

__all__ = ["open_empty"]


def open_empty(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """An empty store; it compares by cosine, and cannot do otherwise."""
    from langchain_core.vectorstores import InMemoryVectorStore

    return EmptyStore(InMemoryVectorStore(embeddings))
