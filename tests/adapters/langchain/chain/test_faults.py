"""Failures as LangChain has them: retries of its models, batches, and retrievers; the rest is in the contract."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oprag.errors import ModelError
from tests.adapters.langchain.chain.conftest import Found, Model, chain_of, every_way, full_chain, run
from tests.adapters.scripted import QUESTION, both_sides, by_step


class RateLimited(Exception):  # noqa: N818 - as clients name it
    """429."""


def on(*numbers: int, error: BaseException | None = None) -> Any:
    """Fails at these calls, counted from 0."""
    return lambda number: (error or ConnectionError(f"call {number} went away")) if number in numbers else None


@every_way
async def test_a_failed_condensing_is_named_too(way: str):
    with pytest.raises(ModelError, match="'condense'"):
        await run(chain_of(Model(error=on(0))), way, {"input": QUESTION, "chat_history": [("a", "b")]})


@both_sides
async def test_errors_of_the_retriever_arrive_as_they_are(is_async: bool):
    class Broken(Found):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            raise LookupError("no such index")

    chain = chain_of(Model(), retriever=Broken(documents=[]), on_error="skip")
    with pytest.raises(LookupError, match="no such index"):
        await run(chain, "ainvoke" if is_async else "invoke", QUESTION)


def rate_limited(share: float, seed: int) -> Any:
    generator = random.Random(seed)
    return lambda number: RateLimited("429") if generator.random() < share else None


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "batch", "abatch"])
@pytest.mark.parametrize("method", ["map_reduce", "map_rerank", "refine", "step_down"])
async def test_with_the_models_own_retries_every_answer_arrives(way: str, method: str):
    error = rate_limited(0.2, seed=0)
    model = Model(reply=by_step, error=error)
    patient = model.with_retry(
        retry_if_exception_type=(RateLimited,), wait_exponential_jitter=False, stop_after_attempt=8
    )
    chain = full_chain(patient, method, count=16, variants=3)
    calm = full_chain(Model(reply=by_step), method, count=16, variants=3)
    result = await run(chain, way, QUESTION)
    assert result["answer"] == (await run(calm, way, QUESTION))["answer"]
    assert model.running == 0


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


def test_secrets_of_a_failing_model_are_not_in_our_words():
    class Secretive(Model):
        api_key: str = "sk-secret"

    with pytest.raises(ModelError) as caught:
        chain_of(Secretive(error=on(0))).invoke(QUESTION)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("way", ["batch", "abatch"])
async def test_an_error_in_a_batch_names_the_call_too(way: str):
    cause = TimeoutError("too slow")
    with pytest.raises(ModelError, match="'answer' failed: TimeoutError: too slow") as caught:
        await run(chain_of(Model(error=on(0, error=cause))), way, QUESTION)
    assert caught.value.__cause__ is cause
