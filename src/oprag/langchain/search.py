"""Search any LangChain vector store by a question, or by a vector that was already computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from oprag._internal.masking import describe
from oprag._internal.sync_async import Step, Steps
from oprag.errors import OptionError
from oprag.stores.adapter import StoreAdapter

__all__ = ["SearchType", "search", "search_by_vector"]

SearchType = Literal["similarity", "similarity_score_threshold", "mmr"]

# LangChain's default `fetch_k` for MMR is 20, so a larger k would silently return only 20 documents.
_MMR_CANDIDATES = 20
_MMR_FACTOR = 2


def search(store: VectorStore, query: str, search_type: SearchType, kwargs: Mapping[str, Any]) -> Steps[Any]:
    """Search a store, and return what it returns: documents, best first, with their scores if it has them."""
    with _unsupported_as_option_error(store, search_type):
        if search_type == "mmr":
            return (yield _call(store, "max_marginal_relevance_search", query, **_with_candidates(kwargs)))
        if search_type == "similarity_score_threshold":
            return (yield _call(store, "similarity_search_with_relevance_scores", query, **kwargs))
        try:
            return (yield _call(store, "similarity_search_with_score", query, **kwargs))
        except NotImplementedError:
            return (yield _call(store, "similarity_search", query, **kwargs))


def search_by_vector(
    store: VectorStore, vector: Iterable[float], adapter: StoreAdapter, kwargs: Mapping[str, Any]
) -> Step:
    """Search a store that has a method for this by the vector of a question, so that the question is embedded once."""
    assert adapter.by_vector is not None  # noqa: S101 - checked by the caller
    return _call(store, adapter.by_vector, list(map(float, vector)), **kwargs, **adapter.by_vector_keywords)


def _call(store: VectorStore, method: str, *args: Any, **kwargs: Any) -> Step:
    """Call a method of a store, or its async version; without one, the method runs in a thread."""
    run = partial(getattr(store, method), *args, **kwargs)
    if hasattr(store, f"a{method}"):
        return Step(run, partial(getattr(store, f"a{method}"), *args, **kwargs))
    return Step(run, partial(run_in_executor, None, run))


@contextmanager
def _unsupported_as_option_error(store: VectorStore, search_type: SearchType) -> Iterator[None]:
    """Replace the NotImplementedError of an unsupported search type, which has no message."""
    try:
        yield
    except NotImplementedError as error:
        name = type(store).__name__
        raise OptionError(
            f"{name} does not support search_type={describe(search_type)}; use another search_type or store", store
        ) from error


def _with_candidates(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {"fetch_k": max(_MMR_CANDIDATES, _MMR_FACTOR * kwargs.get("k", 0)), **kwargs}
