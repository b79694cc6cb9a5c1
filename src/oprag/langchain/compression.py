"""What thresholds need around a LangChain retriever: an embedder, a cache, and the store that was searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprag.embedding.vectors import VectorSources
from oprag.langchain.embedder import as_embedder
from oprag.langchain.embeddings_fields import EmbeddingsFields
from oprag.stores.adapter import adapter_of

__all__ = ["sources_for"]


def sources_for(parts: EmbeddingsFields, store: Any, search: Mapping[str, Any]) -> VectorSources:
    """Where the vectors of documents come from.

    Args:
        parts: The embeddings and the cache, as they were given; the embeddings are those of the store by default.
        store: The vector store or the `DocumentIndex` that the documents came from, where that is known.
        search: The keywords of the search, among them a namespace or a tenant.

    Raises:
        OptionError: The cache is a file, and the embedder does not say which model it is.
    """
    own = getattr(store, "embeddings", None) or getattr(store, "embedder", None)
    used = own if parts.embeddings is None else parts.embeddings
    embedder = None if used is None else as_embedder(used)
    same = store is not None and (parts.embeddings is None or _same(parts.embeddings, own))
    return VectorSources(embedder, parts.cache_for(embedder), adapter_of(store, search) if same else None)


def _same(embeddings: Any, own: Any) -> bool:
    """Whether the vectors of a store are of these embeddings, which may have been given another name."""
    if own is None:
        return False
    if own in (embeddings, getattr(embeddings, "embeddings", None)):
        return True
    return bool(as_embedder(embeddings).name == as_embedder(own).name)
