"""`stream_answer`, where it is more than `stream` and `answer` put together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oprag import ModelError, QueryError
from oprag.methods import Answer
from tests.adapters.langchain.chain.conftest import Found, Model, chain_of
from tests.adapters.langchain.chain.test_structured_output import FOUND, Structured, Verdict
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import QUESTION, STEPS, both_sides, by_step


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


@both_sides
@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_a_stream_that_breaks_gives_no_answer(is_async: bool, on_error: Any):
    chain = chain_of(Model(reply=lambda prompt: "One two three four.", breaks_after=2), on_error=on_error)
    pieces: list[Any] = []
    with pytest.raises(ModelError, match="'answer' failed: ConnectionError: the line broke"):
        await consume(pieces, chain, QUESTION, is_async=is_async)
    assert "".join(pieces) == "One two"


@both_sides
@pytest.mark.parametrize("question", ["", " \n", None, 5, ["a"]])
async def test_a_question_that_cannot_be_asked_costs_nothing(is_async: bool, question: Any):
    model, retriever = Model(), Found(documents=parts(2))
    with pytest.raises(QueryError):
        await streamed(chain_of(model, retriever=retriever), question, is_async=is_async)
    assert (model.calls, retriever.asked) == ([], [])


async def test_nobody_who_reads_nothing_asks_anything():
    model, retriever = Model(), Found(documents=parts(2))
    chain = chain_of(model, retriever=retriever)
    chain.stream_answer(QUESTION).close()  # type: ignore[attr-defined]
    await chain.astream_answer(QUESTION).aclose()  # type: ignore[attr-defined]
    assert (model.calls, retriever.asked) == ([], [])


@both_sides
async def test_choices_and_further_inputs_reach_the_prompt(is_async: bool):
    model = Model(reply=lambda prompt: "B")
    chain = chain_of(model, prompts={"answer": "{context} In {language}: {question}"})
    given = {"choices": ["a storm", "a calm"], "language": "German"}
    *_, answer = await streamed(chain, QUESTION, is_async=is_async, **given)
    assert answer.text == "B"
    assert model.read[0].endswith(f"In German: {QUESTION}\nA. a storm\nB. a calm")


@both_sides
async def test_choices_have_letters_wherever_a_prompt_wants_them(is_async: bool):
    model = Model(reply=by_step)
    prompts = STEPS | {"answer": "ANSWER {context} Q: {question}\nCHOICES:{choices}"}
    chain = chain_of(model, prompts=prompts)
    await streamed(chain, QUESTION, is_async=is_async, choices=["a storm", "a calm"])
    assert model.read[0].endswith("CHOICES:A. a storm\nB. a calm")
    model.calls.clear()
    # The questions in between are others, and have no choices.
    chain = chain_of(model, prompts=prompts, method="step_down", variants=2)
    await streamed(chain, QUESTION, is_async=is_async, choices=["a storm", "a calm"])
    inner = [text for text in model.read if text.startswith("ANSWER")]
    assert len(inner) == 2
    assert all(text.endswith("CHOICES:") for text in inner)


@both_sides
async def test_keys_of_the_chain_do_not_matter(is_async: bool):
    names: dict[str, Any] = {"input_key": "query", "output_key": "result", "documents_key": None}
    chain = chain_of(Model(reply=lambda prompt: "One two."), **names)
    assert [str(piece) for piece in await streamed(chain, QUESTION, is_async=is_async)] == ["One", " two.", "One two."]


@both_sides
async def test_an_input_by_the_name_of_the_answer_is_none_of_its_pieces(is_async: bool):
    model = Model(reply=by_step)
    *texts, answer = await streamed(chain_of(model), QUESTION, is_async=is_async, answer="An older answer.")
    assert "".join(texts) == answer.text == by_step(model.read[0])


@both_sides
async def test_each_stream_is_a_question_of_its_own(is_async: bool):
    model = Model(reply=by_step)
    chain = chain_of(model)
    first, second = [(await streamed(chain, text, is_async=is_async))[-1] for text in ("Who?", "Where?")]
    assert (first.question, second.question) == ("Who?", "Where?")
    assert [answer.text for answer in (first, second)] == [by_step(prompt) for prompt in model.read]
