"""Every method, whichever way it is asked: the same prompts in the same sequence, and the same answer."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.llms.types import MessageRole

from tests.adapters.llama_index.engine.conftest import (
    WAYS,
    Model,
    answered,
    both_models,
    engine_of,
    every_method,
    every_way,
    full_engine,
    run,
)
from tests.adapters.scripted import BOOK, QUESTION, STEPS, both_sides, by_step, part_numbers

# The calls for four passages, by the formulas of the methods; two variants come back where they are asked for.
CALLS = {
    "stuff": ["answer"],
    "refine": ["answer", "refine", "refine", "refine"],
    "map_reduce": ["map"] * 4 + ["reduce"],
    "map_rerank": ["rerank"] * 4,
    "step_down": ["variants", "answer", "answer", "aggregate"],
    "reciprocal": ["variants", "answer", "answer", "aggregate"],
    "long_context": ["answer"],
    "self_route": ["route", "answer"],
}


@every_method
@both_models
async def test_the_same_prompts_and_answer_every_way(method: str, chats: bool):
    seen: list[tuple[str, list[str], list[str]]] = []
    for way in WAYS:
        model = Model(chats=chats, reply=by_step)
        text, response = await run(full_engine(model, method, max_concurrency=1), way)
        assert model.steps == CALLS[method], way
        seen.append((text, model.read, [scored.node_id for scored in response.source_nodes]))
    assert seen[1:] == seen[:1] * 3
    assert seen[0][0]
    assert seen[0][2] == ["voyage-0", "voyage-1", "voyage-2", "voyage-3"]


@every_method
@both_sides
async def test_answer_is_what_query_says(method: str, is_async: bool):
    first, second = Model(reply=by_step), Model(reply=by_step)
    answer = await answered(full_engine(first, method, max_concurrency=1), is_async)
    text, _ = await run(full_engine(second, method, max_concurrency=1), "query")
    assert (answer.text, first.read) == (text, second.read)
    assert [call.step for call in answer.calls] == CALLS[method]
    assert [call.prompt.text for call in answer.calls] == first.read


@every_method
@every_way
async def test_the_answer_does_not_depend_on_how_many_run_at_once(method: str, way: str):
    one, many = Model(reply=by_step), Model(reply=by_step)
    text, _ = await run(full_engine(one, method, max_concurrency=1), way)
    assert (await run(full_engine(many, method, max_concurrency=8), way))[0] == text
    assert sorted(many.read) == sorted(one.read)


@pytest.mark.parametrize("inner", ["refine", "map_reduce", "map_rerank", "long_context", "self_route"])
@pytest.mark.parametrize("method", ["step_down", "reciprocal"])
async def test_inner_methods_every_way(method: str, inner: str):
    seen = []
    for way in WAYS:
        model = Model(reply=by_step)
        text, _ = await run(full_engine(model, method, inner_method=inner, max_concurrency=1), way)
        seen.append((text, model.read))
    assert seen[1:] == seen[:1] * 3
    assert seen[0][1][-1].startswith("AGGREGATE Question: ")


@every_way
async def test_passages_are_read_in_the_order_of_the_source(way: str):
    model = Model(reply=by_step)
    await run(engine_of(model, 6, passage_tokens=1_024), way)
    assert part_numbers(model.read[0]) == list(range(6))


@every_way
async def test_refine_reads_one_passage_after_the_other(way: str):
    model = Model(reply=by_step)
    await run(engine_of(model, 5, method="refine"), way)
    assert [part_numbers(prompt) for prompt in model.read] == [[number] for number in range(5)]


@every_way
async def test_each_question_of_step_down_is_searched_for_once(way: str):
    model = Model(reply=by_step)
    engine: Any = full_engine(model, "step_down")
    await run(engine, way)
    asked = [bundle.query_str for bundle in engine.retriever.questions]
    assert asked[0] == QUESTION
    assert len(asked) == len(set(asked)) == 3


@every_way
async def test_long_context_reads_the_whole_source(way: str):
    model = Model(reply=by_step)
    await run(full_engine(model, "long_context"), way)
    assert model.read == [f"ANSWER {BOOK} Q: {QUESTION}"]


@every_way
@pytest.mark.parametrize(
    ("reply", "steps"),
    [("UNANSWERABLE", 2), ("**Unanswerable**.", 2), ("", 2), ("It is unanswerable why he left.", 1), ("Unanswered", 1)],
)
async def test_self_route_shows_no_refusal(way: str, reply: str, steps: int):
    model = Model(reply=lambda prompt: reply if prompt.startswith("ROUTE") else "From the book.")
    text, response = await run(full_engine(model, "self_route"), way)
    assert (text, len(model.calls)) == (reply if steps == 1 else "From the book.", steps)
    assert response.metadata["oprag"]["route"] == ("rag" if steps == 1 else "long_context")


@every_way
async def test_a_stream_comes_in_the_pieces_of_the_model(way: str):
    model = Model(reply=lambda prompt: "One two three.")
    engine = engine_of(model, streaming=way in {"stream", "astream"})
    if way == "stream":
        response: Any = engine.query(QUESTION)
        assert list(response.response_gen) == ["One", " two", " three."]
    elif way == "astream":
        response = await engine.aquery(QUESTION)
        assert [piece async for piece in response.response_gen] == ["One", " two", " three."]
    else:
        assert (await run(engine, way))[0] == "One two three."


@both_sides
async def test_only_the_last_call_of_a_method_is_streamed(is_async: bool):
    engine = engine_of(Model(reply=by_step), method="refine", streaming=True)
    response: Any = await engine.aquery(QUESTION) if is_async else engine.query(QUESTION)
    pieces = [piece async for piece in response.response_gen] if is_async else list(response.response_gen)
    assert len(pieces) == 5
    assert pieces[0] == "Refine"


@both_sides
async def test_what_was_not_written_in_pieces_comes_as_one(is_async: bool):
    engine = engine_of(Model(reply=by_step), method="map_rerank", streaming=True)
    response: Any = await engine.aquery(QUESTION) if is_async else engine.query(QUESTION)
    (piece,) = [piece async for piece in response.response_gen] if is_async else list(response.response_gen)
    assert piece.startswith("Reranked")


@every_way
async def test_a_chat_model_gets_messages_with_roles(way: str):
    model = Model()
    await run(engine_of(model, prompts={}), way)
    assert [message.role for message in model.calls[0]] == [MessageRole.SYSTEM, MessageRole.USER]
    assert part_numbers(str(model.calls[0][1].content)) == [0, 1, 2, 3]


@every_way
async def test_a_model_that_completes_texts_gets_one_text(way: str):
    chat, completion = Model(), Model(chats=False)
    await run(engine_of(chat, prompts={}), way)
    await run(engine_of(completion, prompts={}), way)
    assert len(completion.calls[0]) == 1
    assert completion.read == chat.read


@every_way
async def test_long_partial_answers_are_merged_in_the_order_of_the_source(way: str):
    model = Model(reply=lambda prompt: " ".join(map(str, part_numbers(prompt))) or "merged")
    words = {"count_tokens": lambda text: len(text.split()), "passage_tokens": 4, "collapse_tokens": 3}
    engine = engine_of(model, 6, method="map_reduce", max_concurrency=1, **words)
    await run(engine, way)
    collapsed = [prompt for prompt in model.read if prompt.startswith("COLLAPSE")]
    assert [prompt.split(" Q: ")[0].split()[1:] for prompt in collapsed][:2] == [["0", "1", "2"], ["3", "4", "5"]]
    assert model.steps[-1] == "reduce"


def test_the_steps_have_templates_of_their_own():
    assert set(STEPS) == set(engine_of(Model()).get_prompts())
