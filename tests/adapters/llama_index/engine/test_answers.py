"""The rich answer: calls, usage, citations, choices, conversations and comparisons."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.schema import TextNode

from oprag import OptionError, QueryError
from oprag.methods import Message, Usage
from tests.adapters.llama_index.conftest import ListRetriever, ranked
from tests.adapters.llama_index.engine.conftest import (
    WAYS,
    Model,
    answered,
    both_models,
    engine_of,
    every_method,
    full_engine,
    run,
)
from tests.adapters.scripted import METHODS, QUESTION, both_sides, by_step, part_numbers

BOTH = [
    ChatMessage(role=MessageRole.USER, content="Who sailed?"),
    ChatMessage(role=MessageRole.ASSISTANT, content="Ada {sailed}."),
]


async def usage(engine: Any, way: str) -> Usage:
    """What a response, or a rich answer, says that it took."""
    if way == "answer":
        return engine.answer(QUESTION).usage  # type: ignore[no-any-return]
    _, response = await run(engine, way)
    return Usage(**response.metadata["oprag"]["usage"])


def stand_in(**values: Any) -> SimpleNamespace:
    """An object such as the clients of providers give."""
    return SimpleNamespace(**values)


RAW: list[tuple[Any, dict[str, Any], Usage]] = [
    ({"usage": {"prompt_tokens": 11, "completion_tokens": 7}}, {}, Usage(11, 7)),
    (stand_in(usage=stand_in(prompt_tokens=11, completion_tokens=7)), {}, Usage(11, 7)),
    ({"usage": stand_in(prompt_tokens=11, completion_tokens=7)}, {}, Usage(11, 7)),
    (
        {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}},
        {},
        Usage(11, 7, 5),
    ),
    (
        stand_in(
            usage=stand_in(prompt_tokens=11, completion_tokens=7, prompt_tokens_details=stand_in(cached_tokens=5))
        ),
        {},
        Usage(11, 7, 5),
    ),
    ({"usage": {"input_tokens": 11, "output_tokens": 7}}, {}, Usage(11, 7)),
    (stand_in(usage=stand_in(input_tokens=11, output_tokens=7, input_tokens_details=None)), {}, Usage(11, 7)),
    ({"usage_metadata": {"prompt_token_count": 11, "candidates_token_count": 7}}, {}, Usage(11, 7)),
    ({"prompt_eval_count": 11, "eval_count": 7}, {}, Usage(11, 7)),
    (None, {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}, Usage(11, 7)),
    ({"usage": None}, {"prompt_tokens": 11, "completion_tokens": 7}, Usage(11, 7)),
    ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, {}, Usage(0, 0)),
]


@pytest.mark.parametrize(("raw", "about", "expected"), RAW)
@pytest.mark.parametrize("way", ["answer", *WAYS])
async def test_usage_is_the_models_own(way: str, raw: Any, about: dict[str, Any], expected: Usage):
    assert await usage(engine_of(Model(raw=raw, about=about)), way) == expected
    assert await usage(engine_of(Model(raw=raw, about=about, chats=False)), way) == expected


@pytest.mark.parametrize("way", ["answer", *WAYS])
@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        "text",
        {"usage": None},
        {"usage": {"prompt_tokens": 11}},
        {"usage": {"prompt_tokens": "11", "completion_tokens": "7"}},
        stand_in(usage=3),
        [1, 2],
    ],
    ids=str,
)
async def test_usage_is_an_estimate_where_the_model_does_not_say(way: str, raw: Any):
    engine = engine_of(Model(raw=raw), count_tokens=lambda text: len(text.split()))
    assert await usage(engine, way) == Usage(4 * 4 + 1 + 1 + 5, 2, estimated=True)


@both_sides
async def test_usage_of_several_calls_adds_up(is_async: bool):
    raw = {"usage": {"prompt_tokens": 11, "completion_tokens": 7}}
    answer = await answered(engine_of(Model(raw=raw), method="map_reduce"), is_async)
    assert answer.usage == Usage(55, 35)
    assert {call.usage for call in answer.calls} == {Usage(11, 7)}
    assert answer.to_dict()["usage"] == {
        "input_tokens": 55,
        "output_tokens": 35,
        "cached_tokens": 0,
        "estimated": False,
    }


@both_models
@pytest.mark.parametrize("way", ["answer", "stream", "astream"])
async def test_a_reply_that_was_cut_short_is_noted(way: str, chats: bool):
    for raw in (
        {"choices": [{"finish_reason": "length"}]},
        stand_in(choices=[stand_in(finish_reason="length")]),
        {"stop_reason": "max_tokens"},
        stand_in(stop_reason="max_tokens"),
        {"done_reason": "length"},
    ):
        engine = engine_of(Model(chats=chats, raw=raw))
        if way == "answer":
            notes = engine.answer(QUESTION).notes
        else:
            _, response = await run(engine, way)
            notes = response.metadata["oprag"]["notes"]
        assert any("cut short" in note for note in notes), raw


@both_sides
@every_method
async def test_everything_about_an_answer_is_json(method: str, is_async: bool):
    answer = await answered(full_engine(Model(reply=by_step), method), is_async)
    values = json.loads(json.dumps(answer.to_dict()))
    assert values["method"] == method
    assert [call["step"] for call in values["calls"]] == [call.step for call in answer.calls]
    assert str(answer) == answer.text
    assert f"method {method}" in answer.explain()
    assert answer.context is not None
    assert part_numbers(answer.context.text) == [0, 1, 2, 3]


@both_sides
async def test_citations_lead_to_the_source(is_async: bool):
    text = "one two three four five six seven eight"
    nodes = [
        TextNode(
            text=text[start:end], start_char_idx=start, end_char_idx=end, metadata={"file_name": "a", "page_label": "3"}
        )
        for start, end in ((24, 39), (0, 7))
    ]
    model = Model(reply=lambda prompt: "First [1], then [2], never [3].")
    answer = await answered(engine_of(model, retriever=ListRetriever(ranked(nodes)), cite=True), is_async)
    assert "[1]\none two" in model.read[0].replace("[1] ", "[1]\n")
    first, second = answer.citations
    assert (first.number, first.source, str(first.page), first.span[:2]) == (1, "a", "3", (0, 7))
    assert (second.number, second.span[:2]) == (2, (24, 39))
    assert text[slice(*second.span[:2])] == second.passage.text
    plain = await answered(engine_of(Model(reply=model.reply), retriever=ListRetriever(ranked(nodes))), is_async)
    assert plain.citations == ()


@every_method
@both_sides
async def test_choices_reach_the_call_that_answers(method: str, is_async: bool):
    model = Model(reply=by_step)
    choices = ["a ship", "a {boat}"]
    answer = await answered(full_engine(model, method), is_async, choices=choices)
    assert "A. a ship\nB. a {boat}" in model.read[-1]
    assert answer.question == QUESTION
    assert choices == ["a ship", "a {boat}"]


def test_choices_change_the_instruction():
    model = Model()
    engine = engine_of(model, prompts={"answer": "{instruction} {context} {question}"})
    engine.answer(QUESTION, choices=("x", "y"))
    assert model.read[0].startswith("Answer with the letter")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"choices": [1]}, "choices must be strings"),
        ({"choices": ["x"] * 27}, "at most 26"),
        ({"choices": "yes"}, "choices must be"),
        ({"chat_history": ["hello"]}, "chat messages, got str"),
        ({"chat_history": "hello"}, "chat messages, got str"),
        ({"chat_history": [("user", "hello")]}, "chat messages, got tuple"),
    ],
    ids=str,
)
@both_sides
async def test_what_belongs_to_a_question_is_checked(is_async: bool, given: dict[str, Any], message: str):
    model = Model()
    engine: Any = engine_of(model)
    with pytest.raises(QueryError, match=message):
        await answered(engine, is_async, **given)
    assert (model.calls, engine.retriever.questions) == ([], [])


@pytest.mark.parametrize("question", ["", " ", None, 3, b"x"])
@both_sides
async def test_a_question_is_a_text_with_words(is_async: bool, question: Any):
    engine: Any = engine_of(Model())
    with pytest.raises(QueryError):
        await answered(engine, is_async, question)
    assert engine.retriever.questions == []


@every_method
@both_sides
async def test_a_follow_up_is_made_to_stand_by_itself(method: str, is_async: bool):
    model = Model(reply=by_step)
    engine: Any = full_engine(model, method, max_concurrency=1)
    answer = await answered(engine, is_async, "And then?", chat_history=BOTH)
    assert model.read[0] == "CONDENSE Human: Who sailed?\nAssistant: Ada {sailed}. Q: And then?"
    assert answer.standalone_question == by_step(model.read[0])
    assert engine.retriever.questions[0].query_str == answer.standalone_question
    assert answer.question == "And then?"
    assert answer.calls[0].step == "condense"


@both_sides
async def test_without_condensing_the_question_is_searched_for_as_it_is(is_async: bool):
    model = Model()
    engine: Any = engine_of(model, condense=False, prompts={"answer": "{chat_history} {context} {question}"})
    answer = await answered(engine, is_async, "And then?", chat_history=BOTH)
    assert [bundle.query_str for bundle in engine.retriever.questions] == ["And then?"]
    assert model.read[0].startswith("Human: Who sailed?\nAssistant: Ada {sailed}.")
    assert answer.standalone_question is None


def test_what_was_never_said_is_no_part_of_a_conversation():
    model = Model(reply=by_step)
    history = [
        ChatMessage(role=MessageRole.SYSTEM, content="Be kind."),
        ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text="Who is"), TextBlock(text="this?")]),
        ChatMessage(role=MessageRole.ASSISTANT, content=None, additional_kwargs={"tool_calls": [{"id": "1"}]}),
        ChatMessage(role=MessageRole.TOOL, content="A result."),
        ChatMessage(role=MessageRole.USER, blocks=[ImageBlock(url="https://example.org/a.png")]),
        ChatMessage(role=MessageRole.ASSISTANT, content="Ada."),
    ]
    engine_of(model).answer("And then?", chat_history=history)
    said = model.read[0]
    assert "Who is\nthis?" in said
    assert "Ada." in said
    assert "A result." not in said
    assert "example.org" not in said


def test_our_own_messages_can_be_a_conversation():
    """A conversation that was kept as it stands in an `Answer`."""
    model = Model(reply=by_step)
    engine_of(model).answer("And then?", chat_history=[Message("user", "Who?"), Message("assistant", "Ada.")])
    assert "Human: Who?\nAssistant: Ada." in model.read[0]


@both_sides
async def test_a_comparison_retrieves_once(is_async: bool):
    model = Model(reply=by_step)
    engine: Any = full_engine(model, "stuff")
    methods = ["stuff", "refine", "map_reduce", "map_rerank", "long_context", "self_route"]
    compared = await engine.acompare(QUESTION, methods) if is_async else engine.compare(QUESTION, methods)
    assert [answer.method for answer in compared] == methods
    assert [bundle.query_str for bundle in engine.retriever.questions] == [QUESTION]
    assert [row["calls"] for row in compared.rows()] == [1, 4, 5, 4, 1, 2]
    assert all(answer.context is compared[0].context for answer in compared)
    assert "map_rerank" in str(compared)
    assert "<table>" in compared._repr_html_()


@both_sides
async def test_what_belongs_to_a_question_belongs_to_its_comparison(is_async: bool):
    model = Model(reply=by_step)
    engine: Any = engine_of(model)
    given: dict[str, Any] = {"choices": ["a storm", "a calm"], "chat_history": BOTH}
    methods = ["stuff", "map_rerank"]
    compared = await engine.acompare("And?", methods, **given) if is_async else engine.compare("And?", methods, **given)
    standalone = {answer.standalone_question for answer in compared}
    assert {bundle.query_str for bundle in engine.retriever.questions} == standalone
    assert len(engine.retriever.questions) == 1
    asked = [call.prompt.text for answer in compared for call in answer.calls if call.step != "condense"]
    assert all(text.endswith("A. a storm\nB. a calm") for text in asked)


@both_sides
async def test_a_comparison_gives_what_each_method_gives(is_async: bool):
    engine = full_engine(Model(reply=by_step), "stuff", max_concurrency=1)
    compared = await engine.acompare(QUESTION, METHODS) if is_async else engine.compare(QUESTION, METHODS)
    alone = [full_engine(Model(reply=by_step), method, max_concurrency=1).answer(QUESTION) for method in METHODS]
    assert [answer.text for answer in compared] == [answer.text for answer in alone]


@both_sides
@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["stuff", "guess"], "unknown method 'guess'"),
        (["stuff", "long_context"], "read_source"),
        ([3], "method must be"),
    ],
    ids=str,
)
async def test_a_comparison_is_checked_before_anything_is_spent(is_async: bool, methods: Any, message: str):
    model = Model()
    engine: Any = engine_of(model)
    with pytest.raises(OptionError, match=message):
        await engine.acompare(QUESTION, methods) if is_async else engine.compare(QUESTION, methods)
    assert (model.calls, engine.retriever.questions) == ([], [])


@both_sides
async def test_a_comparison_of_an_empty_question(is_async: bool):
    engine: Any = engine_of(Model())
    with pytest.raises(QueryError):
        await engine.acompare("", ["stuff"]) if is_async else engine.compare("", ["stuff"])
    assert engine.retriever.questions == []


@both_sides
async def test_answers_do_not_stream_though_responses_do(is_async: bool):
    model = Model()
    answer = await answered(engine_of(model, streaming=True), is_async)
    assert answer.text == "An answer."


async def test_a_sync_question_can_be_asked_inside_of_a_loop():
    model = Model(seconds=0.001)
    engine = engine_of(model, method="map_reduce")
    assert str(engine.query(QUESTION)) == str(await engine.aquery(QUESTION))
    assert str(await asyncio.to_thread(engine.query, QUESTION)) == "An answer."
    assert threading.current_thread() is threading.main_thread()


async def test_one_engine_serves_one_loop_after_the_other():
    engine = engine_of(Model(seconds=0.001), method="map_reduce")

    def in_a_loop() -> str:
        return str(asyncio.run(engine.aquery(QUESTION)))

    assert await asyncio.to_thread(in_a_loop) == await asyncio.to_thread(in_a_loop) == "An answer."
