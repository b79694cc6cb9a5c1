"""`stream_answer`, where it is more than `stream` and `answer` put together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oprag.methods import Answer
from tests.adapters.langchain.chain.conftest import Model, chain_of
from tests.adapters.langchain.chain.test_structured_output import FOUND, Structured, Verdict
from tests.adapters.scripted import QUESTION, both_sides


async def consume(into: list[Any], chain: Any, *given: Any, is_async: bool, **more: Any) -> None:
    """What comes before an error counts."""
    if is_async:
        async for piece in chain.astream_answer(*given, **more):
            into.append(piece)  # noqa: PERF401
        return
    into.extend(chain.stream_answer(*given, **more))


async def streamed(chain: Any, *given: Any, is_async: bool, **more: Any) -> list[Any]:
    pieces: list[Any] = []
    await consume(pieces, chain, *given, is_async=is_async, **more)
    return pieces


@both_sides
@pytest.mark.parametrize("include_raw", [False, True])
async def test_an_object_is_no_text_in_pieces(is_async: bool, include_raw: bool):
    model = Structured().with_structured_output(Verdict, include_raw=include_raw)
    (answer,) = await streamed(chain_of(model, count=2), QUESTION, is_async=is_async)
    assert isinstance(answer, Answer)
    assert (answer.parsed["parsed"] if include_raw else answer.parsed) == FOUND
    assert json.loads(answer.text) == FOUND.model_dump()


async def test_a_streamed_answer_that_is_closed_ends_the_models_stream():
    model = Model(reply=lambda prompt: "One two three four.")
    pieces = chain_of(model).stream_answer(QUESTION)
    assert next(pieces) == "One"
    pieces.close()  # type: ignore[attr-defined]
    assert (model.running, model.cut_off) == (0, 1)
    apieces: Any = chain_of(model).astream_answer(QUESTION)
    assert await anext(apieces) == "One"
    await apieces.aclose()
    assert (model.running, model.cut_off) == (0, 2)
