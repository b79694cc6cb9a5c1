"""Search any LangChain vector store by a question, or by a vector that was already computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.steps import Step, Steps
from oprag.stores.adapter import adapter_of

__all__ = ["Found", "SearchType", "search", "search_by_vector", "takes_a_vector"]

SearchType = Literal["similarity", "similarity_score_threshold", "mmr"]
Found = tuple[list[Document], list[float | None] | None]

# LangChain's default `fetch_k` for MMR is 20, so a larger k would silently return only 20 documents.
_MMR_CANDIDATES = 20
_MMR_FACTOR = 2


def search(store: VectorStore, query: str, search_type: SearchType, kwargs: Mapping[str, Any]) -> Steps[Found]:
    """Search a store, and return the documents, best first, with their scores if the store returns them."""
    with _unsupported_as_option_error(store, search_type):
        if search_type == "mmr":
            return (yield _call(store, "max_marginal_relevance_search", query, **_with_candidates(kwargs))), None
        if search_type == "similarity_score_threshold":
            return _unzipped((yield _call(store, "similarity_search_with_relevance_scores", query, **kwargs)))
        scored = "similarity_search_with_score"
        in_threads = _has_own(store, scored)
        # Prefer an async search without scores to one with scores in a thread.
        in_tasks = _has_own(store, f"a{scored}") or (in_threads and not _has_own(store, "asimilarity_search"))
        names = [scored if in_threads else "similarity_search", f"a{scored}" if in_tasks else "asimilarity_search"]
        run, arun = (partial(getattr(store, name), query, **kwargs) for name in names)
        try:
            found = yield Step(run, arun)
        except NotImplementedError:
            found = yield _call(store, "similarity_search", query, **kwargs)
        return _unzipped(found)


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
) -> Steps[Found]:
    """Version of `search` for a vector, so that the question is embedded once; requires `takes_a_vector`."""
    embedding = list(map(float, vector))
    if search_type == "mmr":
        by_vector = _call(store, "max_marginal_relevance_search_by_vector", embedding, **_with_candidates(kwargs))
        return (yield by_vector), None
    adapter = adapter_of(store)
    assert adapter is not None  # noqa: S101 - checked by `takes_a_vector`
    assert adapter.by_vector is not None  # noqa: S101
    return _unzipped((yield _call(store, adapter.by_vector, embedding, **kwargs, **adapter.by_vector_keywords)))


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


def _unzipped(found: Any) -> Found:
    """Separate documents and scores; LanceDB's full-text search returns documents without scores."""
    if isinstance(found, list | tuple) and all(isinstance(item, tuple | list) for item in found):
        return [document for document, _ in found], [float(score) for _, score in found]
    return found, None
