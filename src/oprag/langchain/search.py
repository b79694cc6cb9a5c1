"""Search any LangChain vector store by a question, or by a vector that was already computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from oprag._internal.masking import describe
from oprag._internal.sync_async import Step, Steps
from oprag.chunk import finite
from oprag.errors import ChunkError, OptionError
from oprag.stores.adapter import adapter_of

__all__ = ["SearchType", "documents_and_scores", "search", "search_by_vector", "takes_a_vector"]

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
        scored = "similarity_search_with_score"
        own = _has_own(store, scored) or _has_own(store, f"a{scored}")
        try:
            return (yield _call(store, scored if own else "similarity_search", query, **kwargs))
        except NotImplementedError:
            return (yield _call(store, "similarity_search", query, **kwargs))


def takes_a_vector(store: VectorStore, search_type: SearchType, kwargs: Mapping[str, Any]) -> bool:
    """Whether a search by the vector of a question is known to return the same results as a search by its text."""
    adapter = adapter_of(store, kwargs)
    if adapter is None or not adapter.dense:
        return False
    if search_type == "mmr":
        return _has_own(store, "max_marginal_relevance_search_by_vector")
    return search_type == "similarity" and adapter.by_vector is not None


def search_by_vector(
    store: VectorStore, vector: Iterable[float], search_type: SearchType, kwargs: Mapping[str, Any]
) -> Steps[Any]:
    """Version of `search` for a vector, so that the question is embedded once; requires `takes_a_vector`."""
    embedding = list(map(float, vector))
    if search_type == "mmr":
        return (yield _call(store, "max_marginal_relevance_search_by_vector", embedding, **_with_candidates(kwargs)))
    adapter = adapter_of(store)
    assert adapter is not None  # noqa: S101 - checked by `takes_a_vector`
    assert adapter.by_vector is not None  # noqa: S101
    return (yield _call(store, adapter.by_vector, embedding, **kwargs, **adapter.by_vector_keywords))


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


def _has_own(store: VectorStore, method: str) -> bool:
    """Whether a store implements this method; the default of the base class raises or is slower."""
    return getattr(type(store), method) is not getattr(VectorStore, method)


def _with_candidates(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {"fetch_k": max(_MMR_CANDIDATES, _MMR_FACTOR * kwargs.get("k", 0)), **kwargs}


def documents_and_scores(searched: Any, found: Any) -> tuple[list[Document], list[float | None] | None]:
    """Separate the documents and scores that a store or retriever returned; None if no score is a number.

    Ranks are enough to order documents, so only a document that is missing is an error.
    """
    name = type(searched).__name__
    if not isinstance(found, list | tuple):
        raise ChunkError(f"{name} must return a list of documents, got {type(found).__name__}", found)
    if all(type(item) is Document for item in found):
        return list(found), None
    documents: list[Document] = []
    scores: list[float | None] = []
    for place, item in enumerate(found):
        document, *others = item if isinstance(item, tuple | list) and item else [item]
        # Several documents are a batch of results, not one result.
        if not isinstance(document, Document) or any(isinstance(other, Document) for other in others):
            raise ChunkError(
                f"{name} must return documents, alone or as (document, score), got {_kind(item)} at index {place}", item
            )
        documents.append(document)
        scores.append(finite(others[0]) if len(others) == 1 else None)
    return documents, None if scores.count(None) == len(scores) else scores


def _kind(item: Any) -> str:
    """The type of an item, for messages; for a tuple or list, with the types of its parts."""
    name = type(item).__name__
    return f"{name} ({', '.join(type(part).__name__ for part in item)})" if isinstance(item, tuple | list) else name
