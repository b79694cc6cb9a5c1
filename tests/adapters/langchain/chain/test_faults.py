"""Failures in batches as LangChain has them; the rest is in the contract."""

from __future__ import annotations

from typing import Any

from tests.adapters.langchain.chain.conftest import Model, chain_of
from tests.adapters.scripted import QUESTION, both_sides


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
