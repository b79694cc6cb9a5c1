"""Failures as LangChain has them: retries of its models, batches, and retrievers; the rest is in the contract."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.langchain.chain.conftest import Found, Model, chain_of, run
from tests.adapters.scripted import QUESTION, both_sides


@both_sides
async def test_errors_of_the_retriever_arrive_as_they_are(is_async: bool):
    class Broken(Found):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            raise LookupError("no such index")

    chain = chain_of(Model(), retriever=Broken(documents=[]), on_error="skip")
    with pytest.raises(LookupError, match="no such index"):
        await run(chain, "ainvoke" if is_async else "invoke", QUESTION)


@both_sides
async def test_one_failing_question_of_a_batch_can_be_returned(is_async: bool):
    chain = chain_of(Model())
    inputs: Any = [QUESTION, "", {"input": None}, "Another?"]
    if is_async:
        results: Any = await chain.abatch(inputs, return_exceptions=True)
    else:
        results = chain.batch(inputs, return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["dict", "QueryError", "QueryError", "dict"]
    assert results[3]["answer"] == "An answer."
