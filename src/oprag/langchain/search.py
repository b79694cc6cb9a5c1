"""Searching any LangChain vector store, with scores where the store gives them natively."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["Found", "SearchType", "asearch", "has_own", "search", "unzipped", "with_candidates"]

SearchType = Literal["similarity", "similarity_score_threshold", "mmr"]
Found = tuple[list[Document], list[float | None] | None]

# LangChain's own default for the candidates of MMR is 20, so a larger k would silently bring 20 documents.
_MMR_CANDIDATES = 20
_MMR_FACTOR = 2


def search(store: VectorStore, query: str, search_type: SearchType, kwargs: dict[str, Any]) -> Found:
    """The documents that the store finds, best first, and their scores where it gives them.

    Raises:
        OptionError: The store has no such search.
    """
    with _clear_refusal(store, search_type):
        if search_type == "mmr":
            return store.max_marginal_relevance_search(query, **with_candidates(kwargs)), None
        if search_type == "similarity_score_threshold":
            return unzipped(store.similarity_search_with_relevance_scores(query, **kwargs))
        if has_own(store, "similarity_search_with_score"):
            with suppress(NotImplementedError):
                return unzipped(store.similarity_search_with_score(query, **kwargs))
        return store.similarity_search(query, **kwargs), None


async def asearch(store: VectorStore, query: str, search_type: SearchType, kwargs: dict[str, Any]) -> Found:
    """As `search`, through the store's own async methods: scores are not worth a thread where those give none.

    Raises:
        OptionError: The store has no such search.
    """
    with _clear_refusal(store, search_type):
        if search_type == "mmr":
            return await store.amax_marginal_relevance_search(query, **with_candidates(kwargs)), None
        if search_type == "similarity_score_threshold":
            return unzipped(await store.asimilarity_search_with_relevance_scores(query, **kwargs))
        in_thread = not has_own(store, "asimilarity_search") and has_own(store, "similarity_search_with_score")
        if in_thread or has_own(store, "asimilarity_search_with_score"):
            with suppress(NotImplementedError):
                return unzipped(await store.asimilarity_search_with_score(query, **kwargs))
        return await store.asimilarity_search(query, **kwargs), None


@contextmanager
def _clear_refusal(store: VectorStore, search_type: SearchType) -> Iterator[None]:
    """LangChain's stores say that they cannot do something with an error that has no message."""
    try:
        yield
    except NotImplementedError as error:
        name = type(store).__name__
        raise OptionError(
            f"{name} has no search_type={describe(search_type)}; use another one or another store", store
        ) from error


def has_own(store: VectorStore, method: str) -> bool:
    """Whether a store does this itself; LangChain's base class raises, or takes a detour."""
    return getattr(type(store), method) is not getattr(VectorStore, method)


def with_candidates(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords for MMR with enough candidates for k documents."""
    return {"fetch_k": max(_MMR_CANDIDATES, _MMR_FACTOR * kwargs.get("k", 0)), **kwargs}


def unzipped(pairs: list[Any]) -> Found:
    """Documents and scores apart; LanceDB leaves out the scores of a search by words."""
    if any(isinstance(pair, Document) for pair in pairs):
        return pairs, None
    return [document for document, _ in pairs], [float(score) for _, score in pairs]
