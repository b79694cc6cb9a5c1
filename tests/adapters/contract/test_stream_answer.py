"""Answers in pieces, and then whole, in both frameworks."""

from __future__ import annotations

from typing import Any

from oprag.methods import Answer
from tests.adapters.contract.frameworks import Framework, each_kind_of_model, each_method
from tests.adapters.scripted import QUESTION, both_sides, by_step

NOTHING = "No passages were found for this question."


async def consume(into: list[Any], answerer: Any, question: Any = QUESTION, *, is_async: bool, **more: Any) -> None:
    """What comes before an error counts."""
    if is_async:
        async for piece in answerer.astream_answer(question, **more):
            into.append(piece)  # noqa: PERF401
        return
    into.extend(answerer.stream_answer(question, **more))


async def streamed(answerer: Any, question: Any = QUESTION, *, is_async: bool, **more: Any) -> list[Any]:
    pieces: list[Any] = []
    await consume(pieces, answerer, question, is_async=is_async, **more)
    return pieces


@each_kind_of_model
@both_sides
@each_method
async def test_it_is_the_answer_of_answer(framework: Framework, is_async: bool, method: str):
    answerer = framework.over(framework.model(reply=by_step), method, cite=True)
    said = framework.conversation("Who sailed?", "Ada.")
    *texts, answer = await streamed(answerer, is_async=is_async, chat_history=said)
    assert isinstance(answer, Answer)
    assert "".join(texts) == answer.text
    whole = await framework.answer(answerer, "async_once" if is_async else "once", chat_history=said)
    assert answer.text == whole.text
    assert [call.prompt for call in answer.calls] == [call.prompt for call in whole.calls]
    assert (answer.citations, answer.notes, answer.route) == (whole.citations, whole.notes, whole.route)


@each_kind_of_model
@both_sides
async def test_without_passages(framework: Framework, is_async: bool):
    answerer = framework.answerer(framework.model(), retriever=framework.retriever([]))
    *texts, answer = await streamed(answerer, is_async=is_async)
    assert "".join(texts) == answer.text == NOTHING


@each_kind_of_model
async def test_nobody_who_reads_nothing_asks_anything(framework: Framework):
    model = framework.model()
    answerer = framework.over(model)
    answerer.stream_answer(QUESTION).close()
    await answerer.astream_answer(QUESTION).aclose()
    assert (model.calls, framework.asked(answerer)) == ([], [])
