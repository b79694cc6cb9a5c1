"""A runnable that is not a retriever, in place of one: it receives all inputs, as in LangChain's retrieval chains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence

from oprag.langchain.messages import history_of, messages_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.langchain.wrapped import walk
from oprag.options import requires

__all__ = ["with_inputs", "without_retrievers"]


def with_inputs(retriever: OrderPreservingRetriever, inputs: Mapping[str, Any], key: str) -> OrderPreservingRetriever:
    """The retriever for one input: the chain that it wraps receives the other inputs along with each question."""
    assert isinstance(retriever.retriever, Runnable)  # noqa: S101 - checked by the caller

    given = dict(inputs)
    if history := history_of(given.pop("chat_history", None)):
        given["chat_history"] = messages_of(history)
    without_history = {name: value for name, value in given.items() if name != "chat_history"}

    def all_inputs(question: str) -> dict[str, Any]:
        # The conversation belongs to the user's question, not to the variants that a method generates.
        return {**(given if question == inputs[key] else without_history), key: question}

    changes: dict[str, Any] = {"retriever": RunnableSequence(RunnableLambda(all_inputs), retriever.retriever)}
    if given.get("filter") is not None:
        # The chain receives the filter among its inputs, not as an argument.
        for name in ("read_neighbors", "read_source"):
            if requires(function := getattr(retriever, name), "filter"):
                changes[name] = partial(function, filter=given["filter"])
    return retriever.model_copy(update=changes)


def without_retrievers(runnable: Any) -> bool:
    """Whether no step of a runnable is a retriever, to which LangChain passes the question without a filter."""
    from langchain_core.runnables import RunnableBranch, RunnableSequence

    for inner in walk(runnable):
        steps: list[Any] = []
        if isinstance(inner, RunnableSequence):
            steps = inner.steps
        elif isinstance(inner, RunnableBranch):
            steps = [inner.default, *(step for _, step in inner.branches)]
        if isinstance(inner, BaseRetriever) or not all(map(without_retrievers, steps)):
            return False
    return True
