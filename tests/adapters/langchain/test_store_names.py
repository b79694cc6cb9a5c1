"""A vector store is `retriever=` or `vectorstore=`, with the same search options, wherever one can be searched."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField
from pydantic import ValidationError

from oprag.langchain import (
    OrderPreservingChain,
    OrderPreservingRetriever,
    create_search_tool,
)
from oprag.methods.profile import Profile
from tests.adapters.langchain.conftest import parts, store_of, texts
from tests.adapters.scripted import QUESTION


def a_chain(**searched: Any) -> OrderPreservingChain:
    return OrderPreservingChain(llm=FakeListChatModel(responses=["An answer."]), **searched)


def a_classic_chain(**searched: Any) -> Any:
    return OrderPreservingChain.from_chain_type(FakeListChatModel(responses=["An answer."]), **searched)


SEARCHING: dict[str, Callable[..., Any]] = {
    "retriever": lambda **searched: OrderPreservingRetriever(**searched).invoke(QUESTION),
    "retriever from a profile": lambda **searched: OrderPreservingRetriever.from_profile(Profile(), **searched).invoke(
        QUESTION
    ),
    "copied retriever": lambda **searched: OrderPreservingRetriever(**searched).model_copy().invoke(QUESTION),
    "chain": lambda **searched: a_chain(**searched).invoke(QUESTION)["context"],
    "chain from a chain type": lambda **searched: a_classic_chain(return_source_documents=True, **searched).invoke(
        QUESTION
    )["source_documents"],
    "configured chain": lambda **searched: (
        a_chain(**searched)
        .configurable_fields(search_kwargs=ConfigurableField("search"))
        .invoke(QUESTION, {"configurable": {"search": searched.get("search_kwargs", {})}})["context"]
    ),
    "search tool": lambda **searched: (
        create_search_tool(**{"k": 128, "token_budget": 16_384, **searched})
        .invoke({"type": "tool_call", "id": "1", "name": "search", "args": {"query": QUESTION}})
        .artifact
    ),
}


@pytest.mark.parametrize("name", ["retriever", "vectorstore"])
@pytest.mark.parametrize("found", SEARCHING.values(), ids=SEARCHING)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3},
        {"search_kwargs": {"filter": lambda document: document.metadata["chunk_index"] < 50}},
        {"search_type": "mmr", "k": 5, "search_kwargs": {"lambda_mult": 0.1}},
    ],
    ids=["defaults", "k", "filter", "mmr"],
)
def test_a_store_is_searched_under_either_name(found: Any, name: str, options: dict[str, Any]):
    store = store_of(parts(140))
    result = found(**{name: store}, **options)
    expected = OrderPreservingRetriever(vectorstore=store, **options).invoke(QUESTION)
    assert len(expected) > 2
    assert texts(result) == texts(expected)


@pytest.mark.parametrize("made", [OrderPreservingRetriever, a_chain])
def test_search_options_are_checked_in_the_same_way(made: Any, store):
    for given, message in (
        ({}, "pass exactly one of retriever= and vectorstore=, got neither"),
        ({"retriever": store, "vectorstore": store}, "pass exactly one of retriever= and vectorstore=, got both"),
        ({"retriever": store, "k": None}, "k=None with a vector store requires max_candidates"),
        ({"retriever": store, "k": 3, "search_kwargs": {"k": 3}}, "k is given twice"),
        ({"retriever": store, "search_type": "similarity_score_threshold"}, "requires a score threshold"),
        ({"retriever": store.as_retriever(), "search_type": "mmr"}, "require a vector store, got retriever="),
        ({"retriever": OrderPreservingRetriever(vectorstore=store), "search_kwargs": {"a": 1}}, "require a vector"),
        ({"retriever": 5}, "retriever must be a LangChain retriever or vector store, got int"),
    ):
        with pytest.raises(ValidationError, match=message):
            made(**given)
