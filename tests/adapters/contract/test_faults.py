"""Models that fail, say nothing or talk nonsense: nothing is lost, and nothing is hidden."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import oprag
from oprag.errors import ModelError, ModelWarning
from oprag.methods import Call
from tests.adapters.contract.frameworks import (
    Framework,
    both_sides,
    both_streams,
    each_framework,
    each_kind_of_model,
    each_way,
)
from tests.adapters.scripted import by_step
from tests.helpers import WordEmbedder


def on(*numbers: int, error: BaseException | None = None) -> Any:
    """Fails at these calls, counted from 0."""
    return lambda number: (error or ConnectionError(f"call {number} went away")) if number in numbers else None


@each_kind_of_model
@each_way
@pytest.mark.parametrize(
    ("method", "failing", "named"),
    [
        ("stuff", 0, "'answer' failed"),
        ("refine", 2, "'refine' failed"),
        ("map_reduce", 1, r"'map' \(2 of 4\) failed"),
        ("map_rerank", 3, r"'rerank' \(4 of 4\) failed"),
        ("step_down", 2, r"'answer' \(2 of 2\) failed"),
        ("self_route", 1, "'answer' failed"),
    ],
)
async def test_one_error_names_the_call_and_keeps_its_cause(
    framework: Framework, way: str, method: str, failing: int, named: str
):
    cause = ConnectionError("the line is down")
    model = framework.model(reply=by_step, error=on(failing, error=cause))
    answerer = framework.over(model, method, variants=2, max_concurrency=1)
    begun = time.perf_counter()
    with pytest.raises(ModelError, match=f"{named}: ConnectionError: the line is down") as caught:
        await framework.run(answerer, way)
    assert caught.value.__cause__ is cause
    assert isinstance(caught.value.value, Call)
    assert caught.value.value.error is cause
    assert 0 <= caught.value.value.seconds <= time.perf_counter() - begun
    assert len(model.read) == failing + 1
    assert caught.value.value.prompt.text == model.read[failing]
    assert model.running == 0


@each_framework
@both_sides
@pytest.mark.parametrize(
    ("method", "failing", "steps"),
    [
        ("map_reduce", (1,), ["map"]),
        ("map_rerank", (0, 2), ["rerank", "rerank"]),
        ("refine", (1, 3), ["refine", "refine"]),
        ("step_down", (1,), ["answer"]),
        ("self_route", (0,), ["route"]),
    ],
)
async def test_skipped_calls_are_on_record(
    framework: Framework, way: str, method: str, failing: tuple[int, ...], steps: list[str]
):
    model = framework.model(reply=by_step, error=on(*failing))
    answerer = framework.over(model, method, variants=2, max_concurrency=1, on_error="skip")
    with pytest.warns(ModelWarning, match=f"{len(failing)} of .* failed and were skipped") as caught:
        answer = await framework.answer(answerer, way)
    assert len(caught) == 1
    assert all(isinstance(call.error, ConnectionError) for call in answer.failed_calls)
    assert all(call.usage.input_tokens == 0 for call in answer.failed_calls)
    assert 0 <= max(call.seconds for call in answer.calls) <= answer.seconds
    assert [number for number, call in enumerate(answer.calls) if call.error] == list(failing)
    assert [call.step for call in answer.failed_calls] == steps
    assert answer.text
    assert any("failed and were skipped" in note for note in answer.notes)
    assert "failed: ConnectionError" in answer.explain()
    assert answer.to_dict()["notes"]


@each_framework
@each_way
async def test_a_warning_points_at_the_caller(framework: Framework, way: str):
    with pytest.warns(ModelWarning) as caught:
        await framework.run(framework.over(framework.model(error=on(0)), "refine", on_error="skip"), way)
    assert not Path(caught[0].filename).is_relative_to(Path(oprag.__file__).parent)


@each_kind_of_model
@both_streams
@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_a_stream_that_breaks_after_something_was_shown_raises(framework: Framework, way: str, on_error: str):
    """What was shown cannot be taken back, so nobody may think that it was all."""
    model = framework.model(reply=lambda prompt: "One two three four.", breaks_after=2)
    pieces: list[str] = []

    async def consume() -> None:
        async for piece in framework.pieces(framework.over(model, on_error=on_error), way, "What?"):
            pieces.append(piece)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(ModelError, match="'answer' failed: ConnectionError: the line broke") as caught:
        await consume()
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert "".join(pieces) == "One two"
    assert model.running == 0


@each_kind_of_model
@both_streams
async def test_a_stream_that_breaks_before_anything_was_shown_can_be_skipped(framework: Framework, way: str):
    model = framework.model(reply=by_step, error=on(1))
    with pytest.warns(ModelWarning):
        text = await framework.run(framework.over(model, "refine", count=2, on_error="skip"), way)
    assert text == by_step(model.read[0])
    model = framework.model(reply=by_step, breaks_after=0)
    with pytest.warns(ModelWarning, match="1 of 4"):
        text = await framework.run(framework.over(model, "refine", on_error="skip"), way)
    assert text.startswith("Refine")


# What is not the model's


class NoVectors(WordEmbedder):
    def embed_documents(self, texts: Any) -> Any:
        raise LookupError("no vectors")

    embed_questions = embed_documents


@each_framework
@each_way
async def test_errors_of_an_embedding_model_are_its_own(framework: Framework, way: str):
    given: dict[str, Any] = {framework.embedder_option: NoVectors()}
    answerer = framework.over(framework.model(reply=by_step), "reciprocal", **given)
    with pytest.raises(LookupError, match="no vectors"):
        await framework.run(answerer, way)


@each_framework
@each_way
@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_errors_of_a_retriever_are_its_own(
    framework: Framework, way: str, on_error: str, monkeypatch: pytest.MonkeyPatch
):
    def fails(*given: Any, **more: Any) -> Any:
        raise LookupError("the index is gone")

    model = framework.model()
    answerer = framework.over(model, on_error=on_error)
    for name in ("_get_relevant_documents", "_retrieve"):
        if hasattr(answerer.retriever, name):
            monkeypatch.setattr(type(answerer.retriever), name, fails)
    with pytest.raises(LookupError, match="the index is gone"):
        await framework.run(answerer, way)
    assert model.calls == []
