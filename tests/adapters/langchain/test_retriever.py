"""The retriever itself: what it wraps, how many documents it brings, and what it refuses."""

from typing import Any

import pytest
from langchain_core.documents import Document
from pydantic import BaseModel, ValidationError

from oprag.errors import OptionError, RetrievalWarning
from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import giving, numbers_of, parts, store_of
from tests.adapters.scripted import QUESTION


def test_a_k_of_the_user_is_the_only_limit():
    long = store_of(
        [Document(f"{number:02d} " * 4096, metadata={"source": "s", "chunk_index": number}) for number in range(9)]
    )
    assert len(OrderPreservingRetriever(vectorstore=long, k=8).invoke(QUESTION)) == 8
    assert len(OrderPreservingRetriever(vectorstore=long, k=8, token_budget=16_384).invoke(QUESTION)) == 5
    assert len(OrderPreservingRetriever(vectorstore=long, token_budget=7_000).invoke(QUESTION)) == 2


def test_k_of_a_call_goes_before_k_of_the_construction(store):
    retriever = OrderPreservingRetriever(vectorstore=store, k=2)
    best = numbers_of(store.similarity_search(QUESTION, k=5))
    assert numbers_of(retriever.invoke(QUESTION)) == sorted(best[:2])
    assert numbers_of(retriever.invoke(QUESTION, None, k=5)) == sorted(best)
    assert numbers_of(retriever.invoke(QUESTION, None, k=None)) == sorted(best[:2])


def test_k_without_effect_warns():
    retriever = OrderPreservingRetriever(retriever=giving(parts(4)), k=5)
    with pytest.warns(RetrievalWarning, match="k=5 has no effect: the retriever returned only 4"):
        assert numbers_of(retriever.invoke(QUESTION)) == [0, 1, 2, 3]


@pytest.mark.parametrize("unknown", [{"top_k": 3}, {"search_kwargs": {}}, {"fetch_k": 3}, {"where": {}}])
async def test_unknown_names_are_refused_in_a_call(store, unknown: dict[str, Any]):
    retriever = OrderPreservingRetriever(vectorstore=store)
    message = f"unknown arguments: {next(iter(unknown))}; only k and filter .* search_kwargs"
    with pytest.raises(OptionError, match=message):
        retriever.invoke(QUESTION, None, **unknown)
    with pytest.raises(OptionError, match=message):
        await retriever.ainvoke(QUESTION, None, **unknown)


def test_a_retriever_can_be_a_field(store):
    class Application(BaseModel):
        retriever: OrderPreservingRetriever

    retriever = OrderPreservingRetriever(vectorstore=store)
    assert Application(retriever=retriever).retriever is retriever
    with pytest.raises(ValidationError, match="Input should be a valid dictionary or instance"):
        Application(retriever="store")


def test_only_what_can_be_asked_is_wrapped(store):
    wrong: dict[str, Any]
    for wrong in (
        {"retriever": "store"},
        {"vectorstore": store.as_retriever()},
        {"vectorstore": 3},
    ):
        with pytest.raises(ValidationError, match=next(iter(wrong))):
            OrderPreservingRetriever(**wrong)
