"""Batches, conversations and choices: the same prompts in the same sequence, and the same answers, in every method."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.langchain.chain.conftest import WAYS, Model, full_chain, run
from tests.adapters.scripted import METHODS, QUESTION, by_step

INPUTS: dict[str, Any] = {
    "question": QUESTION,
    "conversation": {"input": "And then?", "chat_history": [("Who sailed?", "Ada.")]},
    "choices": {"input": QUESTION, "choices": ["a storm", "a calm"]},
}


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("method", METHODS)
async def test_prompts_answers_and_documents_are_the_same_every_way(method: str, given: str):
    seen: dict[str, Any] = {}
    for way in WAYS:
        model = Model(reply=by_step)
        chain = full_chain(model, method, variants=3, cite=True, max_concurrency=1)
        result = await run(chain, way, INPUTS[given])
        seen[way] = (model.calls, result["answer"], [document.page_content for document in result["context"]])
    assert seen["invoke"][0]
    for way in WAYS[1:]:
        assert seen[way] == seen["invoke"], way
