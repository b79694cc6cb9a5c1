"""What can be said about a retriever before it is wrapped."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever

__all__ = ["takes_filter", "unwrapped"]


def takes_filter(retriever: Any) -> bool:
    """Whether a filter is sure to arrive. `**kwargs` is no promise: LangChain drops keywords further down."""
    if not isinstance(retriever, BaseRetriever):
        return False
    parameters = inspect.signature(retriever._get_relevant_documents).parameters  # noqa: SLF001
    return isinstance(retriever, VectorStoreRetriever) or "filter" in parameters


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
