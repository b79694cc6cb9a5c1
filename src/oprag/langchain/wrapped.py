"""What can be said about a retriever before it is wrapped."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever

__all__ = ["searched_by", "takes_filter", "unwrapped", "without_retrievers"]


def takes_filter(retriever: Any) -> bool:
    """Whether a filter is sure to arrive. `**kwargs` is no promise: LangChain drops keywords further down."""
    if not isinstance(retriever, BaseRetriever):
        return False
    parameters = inspect.signature(retriever._get_relevant_documents).parameters  # noqa: SLF001
    return isinstance(retriever, VectorStoreRetriever) or "filter" in parameters


def searched_by(retriever: Any) -> tuple[Any, Mapping[str, Any]] | None:
    """The one store or index that a retriever searches, and the keywords of its search; None where that is not certain.

    Rerankers and compressors (`base_retriever`) are looked through. What is configured when it runs is not, although it
    answers for its default: the store may then be that of another user.
    """
    while isinstance(retriever, BaseRetriever):
        if isinstance(retriever, VectorStoreRetriever):
            return retriever.vectorstore, retriever.search_kwargs
        # By name, since the class loads NumPy.
        if any(kind.__name__ == "DocumentIndexRetriever" for kind in type(retriever).__mro__):
            return retriever.index, {}  # type: ignore[attr-defined]
        retriever = vars(retriever).get("base_retriever")
    return None


def without_retrievers(runnable: Any) -> bool:
    """Whether no step of a runnable is a retriever: to that one LangChain hands on a question, and no filter."""
    from langchain_core.runnables import RunnableBranch, RunnableSequence

    for one in unwrapped(runnable):
        steps: list[Any] = []
        if isinstance(one, RunnableSequence):
            steps = one.steps
        elif isinstance(one, RunnableBranch):
            steps = [one.default, *(step for _, step in one.branches)]
        if isinstance(one, BaseRetriever) or not all(map(without_retrievers, steps)):
            return False
    return True


def unwrapped(runnable: Any) -> Iterator[Any]:
    """The runnables under configurations, retries and fallbacks."""
    # Imported here, since LangChain loads them only for those who use them.
    from langchain_core.runnables import RunnableWithFallbacks
    from langchain_core.runnables.base import RunnableBindingBase
    from langchain_core.runnables.configurable import DynamicRunnable

    if isinstance(runnable, RunnableBindingBase):
        yield from unwrapped(runnable.bound)
    elif isinstance(runnable, DynamicRunnable):
        yield from unwrapped(runnable.default)
    elif isinstance(runnable, RunnableWithFallbacks):
        for inner in runnable.runnables:
            yield from unwrapped(inner)
    else:
        yield runnable
