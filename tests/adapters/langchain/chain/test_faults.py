"""Models that fail, in every way in which models fail."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oprag import ModelError, ModelWarning
from oprag.methods import Call
from tests.adapters.langchain.chain.conftest import (
    METHODS,
    Found,
    Model,
    both_sides,
    by_step,
    chain_of,
    every_way,
    full_chain,
    ranked,
    run,
)
from tests.adapters.langchain.conftest import QUESTION, parts


class RateLimited(Exception):  # noqa: N818 - as clients name it
    """429."""


def on(*numbers: int, error: BaseException | None = None) -> Any:
    """Fails at these calls, counted from 0."""
    return lambda number: (error or ConnectionError(f"call {number} went away")) if number in numbers else None


@every_way
@pytest.mark.parametrize(
    ("method", "failing", "named"),
    [
        ("stuff", 0, r"'answer' failed"),
        ("refine", 0, r"'answer' failed"),
        ("refine", 2, r"'refine' failed"),
        ("map_reduce", 1, r"'map' \(2 of 4\) failed"),
        ("map_reduce", 4, r"'reduce' failed"),
        ("map_rerank", 3, r"'rerank' \(4 of 4\) failed"),
        ("step_down", 0, r"'variants' failed"),
        ("step_down", 2, r"'answer' \(2 of 2\) failed"),
        ("reciprocal", 3, r"'aggregate' failed"),
        ("long_context", 0, r"'answer' failed"),
        ("self_route", 0, r"'route' failed"),
        ("self_route", 1, r"'answer' failed"),
    ],
)
async def test_one_error_names_the_call_and_keeps_its_cause(way: str, method: str, failing: int, named: str):
    cause = ConnectionError("the line is down")
    model = Model(reply=by_step, error=on(failing, error=cause))
    chain = full_chain(model, method, variants=2, max_concurrency=1)
    with pytest.raises(ModelError, match=f"{named}: ConnectionError: the line is down") as caught:
        await run(chain, way, QUESTION)
    assert caught.value.__cause__ is cause
    assert isinstance(caught.value.value, Call)
    assert caught.value.value.error is cause
    assert len(model.prompts) == failing + 1
    assert model.running == 0


@every_way
async def test_a_failed_condensing_is_named_too(way: str):
    with pytest.raises(ModelError, match="'condense'"):
        await run(chain_of(Model(error=on(0))), way, {"input": QUESTION, "chat_history": [("a", "b")]})


@every_way
@pytest.mark.parametrize(
    "error", [TimeoutError("too slow"), RateLimited("429"), ValueError("bad"), OSError(104, "reset")]
)
async def test_every_kind_of_error_is_the_cause(way: str, error: Exception):
    with pytest.raises(ModelError, match=type(error).__name__) as caught:
        await run(chain_of(Model(error=on(0, error=error))), way, QUESTION)
    assert caught.value.__cause__ is error


@both_sides
async def test_errors_of_the_retriever_arrive_as_they_are(is_async: bool):
    class Broken(Found):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            raise LookupError("no such index")

    chain = chain_of(Model(), retriever=Broken(documents=[]), on_error="skip")
    with pytest.raises(LookupError, match="no such index"):
        await run(chain, "ainvoke" if is_async else "invoke", QUESTION)


@both_sides
@pytest.mark.parametrize(
    ("method", "failing", "steps"),
    [
        ("map_reduce", (1,), ["map"]),
        ("map_reduce", (0, 1, 2), ["map"] * 3),
        ("map_rerank", (0, 2), ["rerank", "rerank"]),
        ("refine", (1, 3), ["refine", "refine"]),
        ("refine", (0,), ["answer"]),
        ("step_down", (1,), ["answer"]),
        ("step_down", (0,), ["variants"]),
        ("self_route", (0,), ["route"]),
    ],
)
async def test_skipped_calls_are_on_record(is_async: bool, method: str, failing: tuple[int, ...], steps: list[str]):
    model = Model(reply=by_step, error=on(*failing))
    chain = full_chain(model, method, variants=2, max_concurrency=1, on_error="skip")
    with pytest.warns(ModelWarning, match=f"{len(failing)} of .* failed and were skipped") as caught:
        answer = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    assert len(caught) == 1
    assert [call.step for call in answer.failed_calls] == steps
    assert all(isinstance(call.error, ConnectionError) for call in answer.failed_calls)
    assert answer.text
    assert any("failed and were skipped" in note for note in answer.notes)
    assert "failed: ConnectionError" in answer.explain()
    assert answer.to_dict()["notes"]


@every_way
@pytest.mark.parametrize("method", METHODS)
async def test_with_every_call_failing_there_is_nothing_to_answer_from(method: str, way: str):
    """An empty answer would look like one."""
    cause = TimeoutError("too slow")
    model = Model(error=lambda number: cause)
    with pytest.raises(ModelError, match=r"(\d) of \1 calls failed, so .* failed: TimeoutError: too slow") as caught:
        await run(full_chain(model, method, on_error="skip"), way, QUESTION)
    assert caught.value.__cause__ is cause


@every_way
@pytest.mark.parametrize(("method", "failing"), [("map_reduce", 4), ("step_down", 3), ("reciprocal", 3)])
async def test_without_its_last_call_a_method_has_no_answer(method: str, failing: int, way: str):
    model = Model(reply=by_step, error=on(failing))
    with pytest.raises(ModelError, match=rf"1 of {failing + 1} calls failed"):
        await run(full_chain(model, method, variants=2, max_concurrency=1, on_error="skip"), way, QUESTION)


@every_way
async def test_skipping_gives_the_answer_of_the_others(way: str):
    model = Model(reply=by_step, error=on(1))
    chain = chain_of(model, method="map_reduce", on_error="skip", max_concurrency=1)
    with pytest.warns(ModelWarning):
        result = await run(chain, way, QUESTION)
    reduce = model.read[-1]
    assert result["answer"] == by_step(reduce)
    assert [by_step(prompt) in reduce for prompt in model.read[:4]] == [True, False, True, True]


@every_way
async def test_a_skipped_last_refinement_leaves_the_answer_before_it(way: str):
    model = Model(reply=by_step, error=on(3))
    chain = chain_of(model, method="refine", on_error="skip")
    with pytest.warns(ModelWarning):
        result = await run(chain, way, QUESTION)
    assert result["answer"] == by_step(model.read[2])


@every_way
async def test_a_warning_points_at_the_caller(way: str):
    with pytest.warns(ModelWarning) as caught:
        await run(chain_of(Model(error=on(0)), method="refine", on_error="skip"), way, QUESTION)
    assert "/oprag/" not in caught[0].filename


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_a_stream_that_breaks_after_something_was_shown_raises(way: str, on_error: Any):
    """What was shown cannot be taken back, so nobody may think that it was all."""
    model = Model(reply=lambda prompt: "One two three four.", breaks_after=2)
    chain = chain_of(model, on_error=on_error)
    pieces: list[Any] = []

    async def consume() -> None:
        if way == "stream":
            pieces.extend(chain.stream(QUESTION))
            return
        async for piece in chain.astream(QUESTION):
            pieces.append(piece)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(ModelError, match="'answer' failed: ConnectionError: the line broke") as caught:
        await consume()
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert [list(piece) for piece in pieces] == [["input"], ["context"], ["answer"], ["answer"]]
    assert "".join(piece.get("answer", "") for piece in pieces) == "One two"
    assert model.running == 0


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_a_stream_that_breaks_before_anything_was_shown_can_be_skipped(way: str):
    model = Model(reply=by_step, error=on(1))
    chain = chain_of(model, count=2, method="refine", on_error="skip")
    with pytest.warns(ModelWarning):
        result = await run(chain, way, QUESTION)
    assert result["answer"] == by_step(model.read[0])


@every_way
async def test_no_text_is_no_error_and_noted(way: str):
    assert (await run(chain_of(Model(reply=lambda prompt: "")), way, QUESTION))["answer"] == ""
    answer = chain_of(Model(reply=lambda prompt: "")).answer(QUESTION)
    assert answer.notes == ("the model's reply was empty",)


GARBAGE = [
    "",
    " \n\t ",
    "\x00\x01\ufffd",
    "{",
    "]]]",
    "Confidence: ",
    "Confidence: NaN",
    "[999999999999]",
    "🙂" * 500,
    "a" * 20_000,
]


@both_sides
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: repr(text[:12]))
async def test_garbage_raises_nothing(is_async: bool, method: str, text: str):
    chain = full_chain(Model(reply=lambda prompt: text), method, cite=True)
    answer = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    # What follows the label of a confidence is not a part of the answer.
    expected = "" if (method, text) == ("map_rerank", "Confidence: ") else text.strip()
    assert answer.text.strip() == expected
    assert answer.citations == ()
    answer.explain()
    answer.to_dict()
    whole = await run(chain, "astream" if is_async else "stream", QUESTION)
    assert whole["answer"] == answer.text


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
async def test_without_retries_one_of_twenty_percent_ends_the_question(is_async: bool):
    model = Model(reply=by_step, error=rate_limited(0.2, seed=0))
    chain = chain_of(model, count=30, method="map_reduce")
    with pytest.raises(ModelError, match=r"'map' \(\d+ of 30\) failed: RateLimited: 429"):
        await run(chain, "ainvoke" if is_async else "invoke", QUESTION)
    assert model.running == 0


@both_sides
async def test_without_retries_twenty_percent_can_be_skipped(is_async: bool):
    model = Model(reply=by_step, error=lambda number: RateLimited("429") if number % 5 == 0 and number < 30 else None)
    chain = chain_of(model, count=30, method="map_reduce", on_error="skip")
    with pytest.warns(ModelWarning, match="6 of 31"):
        answer = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    assert len(answer.failed_calls) == 6
    assert len(answer.calls) == 31
    assert answer.text.startswith("Reduce")


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


@both_sides
async def test_a_chain_goes_on_working_after_a_failure(is_async: bool):
    """As when a server was away and is back."""
    model = Model(error=on(0, 1))
    chain = chain_of(model, retriever=Found(documents=ranked(parts(3))))
    for _ in range(2):
        with pytest.raises(ModelError):
            await run(chain, "ainvoke" if is_async else "invoke", QUESTION)
    assert (await run(chain, "ainvoke" if is_async else "invoke", QUESTION))["answer"] == "An answer."


def test_secrets_of_a_failing_model_are_not_in_our_words():
    class Secretive(Model):
        api_key: str = "sk-secret"

    with pytest.raises(ModelError) as caught:
        chain_of(Secretive(error=on(0))).invoke(QUESTION)
    assert "sk-secret" not in str(caught.value)
