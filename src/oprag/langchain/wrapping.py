"""Making an `OrderPreservingRetriever` of whatever retriever a chain is given."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence
from langchain_core.vectorstores import VectorStore

from oprag.errors import OptionError
from oprag.langchain.messages import history_of, messages_of
from oprag.langchain.retriever import OrderPreservingRetriever, unwrapped
from oprag.options import requires

__all__ = ["order_preserving", "takes_all_inputs", "with_inputs", "without_retrievers"]


def order_preserving(retriever: Any, given: Mapping[str, Any], parts: Mapping[str, Any]) -> OrderPreservingRetriever:
    """The retriever itself where it is ours, else one around it.

    Args:
        retriever: Any retriever, runnable that retrieves, or vector store.
        given: The options of the retriever that the chain was given.
        parts: What thresholds and neighbours need, as the chain was given it; `embeddings` serve methods too.

    Raises:
        OptionError: It is none of these, or it is ours and there are options that it does not have.
    """
    if isinstance(retriever, OrderPreservingRetriever):
        # The chain's own embeddings serve its methods; one cache serves both.
        names = [*given, *(name for name in parts if name == "read_neighbors")]
        if names:
            raise OptionError(
                f"the retriever is an OrderPreservingRetriever with options of its own; set {', '.join(names)} there",
                given,
            )
        return retriever
    if isinstance(retriever, VectorStore):
        return OrderPreservingRetriever(vectorstore=retriever, **given, **parts)
    if not isinstance(retriever, Runnable):
        raise OptionError(f"retriever must be a LangChain retriever, got {type(retriever).__name__}", retriever)
    return OrderPreservingRetriever(retriever=retriever, **given, **parts)


def takes_all_inputs(retriever: OrderPreservingRetriever) -> bool:
    """Whether what is wrapped is no retriever but a chain, such as one of `create_history_aware_retriever`.

    As in LangChain's `create_retrieval_chain`, that gets all inputs, and not the question alone.
    """
    inner = retriever.retriever
    return inner is not None and not any(isinstance(one, BaseRetriever) for one in unwrapped(inner))


def with_inputs(retriever: OrderPreservingRetriever, inputs: Mapping[str, Any], key: str) -> OrderPreservingRetriever:
    """The retriever for one question of a chain, whose wrapped chain gets the inputs beside each question."""
    assert retriever.retriever is not None  # noqa: S101 - asked before

    given = dict(inputs)
    if history := history_of(given.pop("chat_history", None)):
        given["chat_history"] = messages_of(history)
    alone = {name: value for name, value in given.items() if name != "chat_history"}

    def all_inputs(question: str) -> dict[str, Any]:
        # The conversation belongs to the user's question, and not to others that a method asks.
        return {**(given if question == inputs[key] else alone), key: question}

    changes: dict[str, Any] = {"retriever": RunnableSequence(RunnableLambda(all_inputs), retriever.retriever)}
    if requires(retriever.read_neighbors, "filter"):
        changes["read_neighbors"] = partial(retriever.read_neighbors, filter=given.get("filter"))
    return retriever.model_copy(update=changes)


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
