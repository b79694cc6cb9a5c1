"""Searching a LangChain vector store by a vector that is already there, so that a question is embedded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from oprag.langchain.search import Found, SearchType, has_own, unzipped, with_candidates
from oprag.stores.adapter import adapter_of

__all__ = ["asearch_by_vector", "search_by_vector", "takes_a_vector"]


def takes_a_vector(store: VectorStore, search_type: SearchType, kwargs: Mapping[str, Any]) -> bool:
    """Whether a search by the vector of a question is known to find what one by its words does."""
    adapter = adapter_of(store, kwargs)
    if adapter is None or not adapter.dense:
        return False
    if search_type == "mmr":
        return has_own(store, "max_marginal_relevance_search_by_vector")
    return search_type == "similarity" and adapter.by_vector is not None


def search_by_vector(
    store: VectorStore, vector: Iterable[float], search_type: SearchType, kwargs: Mapping[str, Any]
) -> Found:
    """The documents nearest to a vector, best first, and their scores; where the store `takes_a_vector`."""
    embedding = list(map(float, vector))
    if search_type == "mmr":
        return store.max_marginal_relevance_search_by_vector(embedding, **with_candidates(kwargs)), None
    method, keywords = _method(store)
    return unzipped(getattr(store, method)(embedding, **kwargs, **keywords))


async def asearch_by_vector(
    store: VectorStore, vector: Iterable[float], search_type: SearchType, kwargs: Mapping[str, Any]
) -> Found:
    """As `search_by_vector`, through the store's own async methods."""
    embedding = list(map(float, vector))
    if search_type == "mmr":
        return await store.amax_marginal_relevance_search_by_vector(embedding, **with_candidates(kwargs)), None
    method, keywords = _method(store)
    if hasattr(store, f"a{method}"):
        return unzipped(await getattr(store, f"a{method}")(embedding, **kwargs, **keywords))
    return unzipped(await run_in_executor(None, getattr(store, method), embedding, **kwargs, **keywords))


def _method(store: VectorStore) -> tuple[str, Mapping[str, Any]]:
    adapter = adapter_of(store)
    assert adapter is not None  # noqa: S101 - asked before
    assert adapter.by_vector is not None  # noqa: S101
    return adapter.by_vector, adapter.by_vector_keywords
