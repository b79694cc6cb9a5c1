"""Profiles over stores, whose search has a limit, and around a retriever that has options of its own."""

from typing import Any

import pytest
from pydantic import ValidationError

from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever
from oprag.methods.profile import Profile, read_profile, write_profile
from tests.adapters.langchain.chain.conftest import Model
from tests.adapters.langchain.conftest import parts, store_of
from tests.adapters.scripted import QUESTION, STEPS, by_step

CONTEXT: dict[str, Any] = {"k": 5, "token_budget": 40, "count_tokens": "words", "order": "reverse_rank"}


def saved(tmp_path: Any, **tables: Any) -> str:
    path = tmp_path / "oprag.toml"
    write_profile(Profile(**tables), path)
    return str(path)


@pytest.mark.parametrize("chain", [False, True], ids=["retriever", "chain"])
def test_a_limit_that_there_is_not_stays_away_from_a_store_too(chain):
    store = store_of(parts(150))
    profile = Profile(context={"k": None, "max_candidates": 150, "token_budget": None})
    if chain:
        made = OrderPreservingChain.from_profile(profile, llm=Model(), retriever=store)
        assert len(made.answer(QUESTION).contexts[0].kept) == 150
        # Nor does a copy get one.
        assert len(made.model_copy(update={"method": "stuff"}).answer(QUESTION).contexts[0].kept) == 150
    else:
        assert len(OrderPreservingRetriever.from_profile(profile, vectorstore=store).invoke(QUESTION)) == 150


def test_a_store_needs_to_know_how_many_to_search_for(store):
    profile = Profile(context={"k": None, "token_budget": 20})
    with pytest.raises(ValidationError, match="k=None with a vector store requires max_candidates"):
        OrderPreservingRetriever.from_profile(profile, vectorstore=store)
    with pytest.raises(ValidationError, match="k=None with a vector store requires max_candidates"):
        OrderPreservingChain.from_profile(profile, llm=Model(), retriever=store)
    assert OrderPreservingRetriever.from_profile(profile, vectorstore=store, max_candidates=12).invoke(QUESTION)


def test_a_retriever_of_the_profile_has_its_own_options(tmp_path, store):
    profile = read_profile(saved(tmp_path, context=CONTEXT, method={"method": "refine", "prompts": STEPS}))
    retriever = OrderPreservingRetriever(vectorstore=store, **profile.context)
    chain = OrderPreservingChain(llm=Model(reply=by_step), retriever=retriever, **profile.method)
    assert chain.answer(QUESTION).method == "refine"
    assert len(chain.answer(QUESTION).contexts[0].kept) == len(retriever.get_context(QUESTION).kept)
    with pytest.raises(ValidationError, match=r"has its own options; set .* there"):
        OrderPreservingChain.from_profile(profile, llm=Model(), retriever=retriever)
